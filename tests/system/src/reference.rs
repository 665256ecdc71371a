//! The reference platform, and a client of its HTTP API: the agent that works through it.

use std::time::Duration;

use platform::{DEFAULT_CLIENT_ID, Database, IssuedTokens, Platform, PlatformOptions};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Rig;
use crate::rig::PATIENCE;

/// The one user.
pub const USER: &str = "ann";
/// Her password; no secret.
pub const PASSWORD: &str = "a test's password";

/// A platform on a database of its own, which outlives it, and a token for its API.
pub struct Reference {
    options: PlatformOptions,
    platform: Option<Platform>,
    /// A client that follows no redirects and keeps no cookies.
    pub http: reqwest::Client,
    agent: String,
    _dir: TempDir,
}

impl Reference {
    /// A platform with the usual settings.
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A platform with other settings.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn with(tune: impl FnOnce(&mut PlatformOptions)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut options = PlatformOptions {
            database: Database::File(dir.path().join("platform.sqlite")),
            ..PlatformOptions::default()
        };
        // The agent's token is as old as the platform; it outlives every test, whatever the machines' tokens do.
        let platform = Platform::start(options.clone()).await.expect("the platform starts");
        platform.add_user(USER, PASSWORD).await.expect("a user");
        let agent = platform.issue_tokens(USER, DEFAULT_CLIENT_ID).await.expect("tokens").access_token;
        options.listen = platform.address();
        platform.stop().await;
        tune(&mut options);
        let platform = Platform::start(options.clone()).await.expect("the platform starts again");
        Self { options, platform: Some(platform), http: client(), agent, _dir: dir }
    }

    /// Its address for `platform_url`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.options.listen)
    }

    /// Stops it; state stays.
    pub async fn stop(&mut self) {
        if let Some(platform) = self.platform.take() {
            platform.stop().await;
        }
    }

    /// Starts it again, at the same address and with the same state.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start_again(&mut self) {
        self.platform = Some(Platform::start(self.options.clone()).await.expect("the platform starts again"));
    }

    /// Tokens for a machine, as a sign-in gives them.
    ///
    /// # Panics
    ///
    /// When the platform is stopped.
    pub async fn tokens(&self) -> IssuedTokens {
        let platform = self.platform.as_ref().expect("the platform runs");
        platform.issue_tokens(USER, DEFAULT_CLIENT_ID).await.expect("tokens")
    }

    /// An executor's rig that is signed in here.
    pub async fn rig(&self) -> Rig {
        self.rig_with("").await
    }

    /// As [`Reference::rig`], with more lines of `config.toml`.
    pub async fn rig_with(&self, more: &str) -> Rig {
        let rig = Rig::with(&self.url(), more);
        let tokens = self.tokens().await;
        rig.sign_in(&tokens.access_token, Some(&tokens.refresh_token));
        rig
    }

    /// One call of the API.
    ///
    /// # Panics
    ///
    /// When there is no answer, or none of JSON.
    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.url()))
            .bearer_auth(&self.agent)
            .timeout(PATIENCE);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect(&text) };
        (status, body)
    }

    /// `GET`
    pub async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, None).await.1
    }

    /// `POST`
    pub async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.call(Method::POST, path, Some(body)).await
    }

    /// The one machine, as the platform lists it, when it is connected. With `except`, when it is on another connection
    /// than that.
    ///
    /// # Panics
    ///
    /// When none comes.
    pub async fn machine(&self, except: Option<&Value>) -> Value {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let listed = self.get("/api/copilot/executors").await;
            let machine = &listed["executors"][0];
            if !machine.is_null() && except.is_none_or(|old| old["connection_id"] != machine["connection_id"])
            {
                return machine.clone();
            }
            assert!(tokio::time::Instant::now() < deadline, "no machine came");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// One page of the folder picker.
    ///
    /// # Panics
    ///
    /// When the machine does not list.
    pub async fn browse(
        &self,
        machine: &Value,
        browse_id: Option<&Value>,
        directory_ref: Option<&Value>,
    ) -> Value {
        let mut body = json!({"expected_connection_id": machine["connection_id"]});
        if let (Some(browse_id), Some(directory_ref)) = (browse_id, directory_ref) {
            (body["browse_id"], body["directory_ref"]) = (browse_id.clone(), directory_ref.clone());
        }
        let id = machine["machine_id"].as_str().expect("a machine id");
        let (status, listing) = self.post(&format!("/api/copilot/executors/{id}/directories"), body).await;
        assert_eq!(status, StatusCode::OK, "{listing}");
        listing
    }

    /// Asks for a session on a folder of a listing.
    pub async fn ask_for_session(
        &self,
        machine: &Value,
        browse_id: &Value,
        directory_ref: &Value,
    ) -> (StatusCode, Value) {
        let target = json!({
            "kind": "local", "machine_id": machine["machine_id"], "connection_id": machine["connection_id"],
            "browse_id": browse_id, "directory_ref": directory_ref,
        });
        self.post("/api/chat/sessions", json!({"execution_target": target})).await
    }

    /// A session on the machine's first root, made as a person would: pick the machine, pick the folder.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub async fn session(&self) -> String {
        let machine = self.machine(None).await;
        let roots = self.browse(&machine, None, None).await;
        let first = &roots["entries"][0]["directory_ref"];
        let (status, made) = self.ask_for_session(&machine, &roots["browse_id"], first).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["id"].as_str().expect("a session id").to_owned()
    }

    /// Calls a tool; the whole answer.
    ///
    /// # Panics
    ///
    /// When the call itself is refused.
    pub async fn answer(&self, session: &str, tool: &str, arguments: Value) -> Value {
        let (status, answer) =
            self.post(&format!("/api/copilot/sessions/{session}/tools/{tool}"), arguments).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    /// Calls a tool that works; its result.
    ///
    /// # Panics
    ///
    /// When it does not work.
    pub async fn tool(&self, session: &str, tool: &str, arguments: Value) -> Value {
        let mut answer = self.answer(session, tool, arguments).await;
        assert_eq!(answer["ok"], true, "{answer}");
        answer["result"].take()
    }

    /// Calls a tool that is refused; its error code.
    ///
    /// # Panics
    ///
    /// When it is not refused.
    pub async fn refused(&self, session: &str, tool: &str, arguments: Value) -> String {
        let answer = self.answer(session, tool, arguments).await;
        assert_eq!(answer["ok"], false, "{answer}");
        answer["error"]["code"].as_str().expect("a code").to_owned()
    }

    /// A request to the token endpoint with a refresh token.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub async fn refresh(&self, refresh_token: &str) -> StatusCode {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", DEFAULT_CLIENT_ID),
            ("refresh_token", refresh_token),
        ];
        let asked = self.http.post(format!("{}/api/oauth/token", self.url())).form(&form).send().await;
        asked.expect("an answer").status()
    }
}

fn client() -> reqwest::Client {
    // Another test of this process may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("a client")
}

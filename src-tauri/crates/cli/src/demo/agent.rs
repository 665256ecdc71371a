//! The hosted agent, as far as it is a client of the platform's HTTP API.

use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use url::Url;

use crate::failure::{Code, Failure, Outcome, failed};

/// How long a machine may take to appear. It takes a second.
const MACHINE_PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Agent {
    http: Client,
    platform: Url,
    token: String,
}

/// What a tool answered.
pub(super) enum Answer {
    Result(Value),
    Refused { code: String, message: String },
}

impl Agent {
    pub(super) fn new(http: Client, platform: Url, token: String) -> Self {
        Self { http, platform, token }
    }

    /// The machine, once it is connected.
    pub(super) async fn machine(&self) -> Outcome<Value> {
        let deadline = Instant::now() + MACHINE_PATIENCE;
        while Instant::now() < deadline {
            let listed = self.call(Method::GET, "/api/copilot/executors", None).await?;
            match &listed["executors"][0] {
                Value::Null => tokio::time::sleep(PAUSE).await,
                machine => return Ok(machine.clone()),
            }
        }
        Err(Failure::new(Code::Failed, "the machine did not connect"))
    }

    /// One page of the folder picker: the shared folders, or what is in one of them.
    pub(super) async fn browse(&self, machine: &Value, inside: Option<(&Value, &Value)>) -> Outcome<Value> {
        let id = machine["machine_id"].as_str().unwrap_or_default();
        let mut body = json!({"expected_connection_id": machine["connection_id"]});
        if let Some((listing, entry)) = inside {
            body["browse_id"] = listing["browse_id"].clone();
            body["directory_ref"] = entry["directory_ref"].clone();
        }
        self.call(Method::POST, &format!("/api/copilot/executors/{id}/directories"), Some(body)).await
    }

    /// A session on a folder of a listing.
    pub(super) async fn create_session(
        &self,
        machine: &Value,
        listing: &Value,
        entry: &Value,
    ) -> Outcome<Value> {
        let target = json!({
            "kind": "local", "machine_id": machine["machine_id"], "connection_id": machine["connection_id"],
            "browse_id": listing["browse_id"], "directory_ref": entry["directory_ref"],
        });
        self.call(Method::POST, "/api/chat/sessions", Some(json!({"execution_target": target}))).await
    }

    /// Calls a tool of a session.
    pub(super) async fn tool(&self, session: &str, name: &str, arguments: &Value) -> Outcome<Answer> {
        let path = format!("/api/copilot/sessions/{session}/tools/{name}");
        let mut answer = self.call(Method::POST, &path, Some(arguments.clone())).await?;
        if answer["ok"] == true {
            return Ok(Answer::Result(answer["result"].take()));
        }
        let text = |key: &str| answer["error"][key].as_str().unwrap_or_default().to_owned();
        Ok(Answer::Refused { code: text("code"), message: text("message") })
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Outcome<Value> {
        let url = self.platform.join(path).map_err(failed(Code::Failed))?;
        let mut request = self.http.request(method, url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let failure = |error: reqwest::Error| Failure::new(Code::Failed, format!("{path}: {error}"));
        let answer = request.send().await.map_err(failure)?;
        let status = answer.status();
        let text = answer.text().await.map_err(failure)?;
        if !status.is_success() {
            return Err(Failure::new(Code::Failed, format!("{path} answered {status}: {text}")));
        }
        serde_json::from_str(&text).map_err(failed(Code::Failed))
    }
}

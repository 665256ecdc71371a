//! What happens, in order. Each step checks what it got.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use executor::config::{Config, Overrides};
use executor::oauth::Attempt;
use platform::{DEFAULT_CLIENT_ID, FirstUser};
use reqwest::Client;
use serde_json::{Value, json};
use url::Url;

use super::agent::{Agent, Answer};
use super::browser::Browser;
use super::machine::{Installation, lives};
use super::project;
use super::stage::Stage;
use super::transcript::{Transcript, Who};
use crate::failure::{Code, Failure, Outcome, failed};

/// How long something may take that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// What the kill switch promises (safety.md, 4).
const KILL_PROMISE: Duration = Duration::from_millis(250);

/// A session of the agent's, and how the steps are told.
struct Session<'a> {
    agent: &'a Agent,
    transcript: &'a Transcript,
    id: String,
    root: PathBuf,
}

/// Plays it all. With `keep` the machine is connected again at the end, and the person is told how to look around.
pub(super) async fn play(stage: &mut Stage, transcript: &Transcript, keep: bool) -> Outcome {
    transcript
        .note("Deskhand: an agent mends a small project on this computer, in a folder it was given.")?;
    let http = client()?;
    let (url, user, token) = a_platform(stage, transcript).await?;
    sign_in(&stage.installation, transcript, &url, &user, &stage.projects(), http.clone()).await?;
    let agent = Agent::new(http, url.clone(), token);
    let session = connect(stage, transcript, &agent).await?;
    mend(&session).await?;
    overreach(&session).await?;
    show_log(&stage.installation, transcript).await?;
    kill(&stage.installation, &session).await?;
    if keep {
        stay(stage, &session, &url, &user).await?;
    }
    Ok(())
}

fn client() -> Outcome<Client> {
    // Another client of this process may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        // All of it is on the loopback, without TLS, also where no certificates are installed.
        .tls_certs_only([])
        .timeout(Duration::from_secs(150))
        .build()
        .map_err(failed(Code::Failed))
}

fn ensure(holds: bool, what: impl Display) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::new(Code::Failed, what)) }
}

async fn a_platform(stage: &mut Stage, t: &Transcript) -> Outcome<(Url, FirstUser, String)> {
    t.chapter("A platform of our own")?;
    let platform =
        t.step(Who::Platform, "starts, with its state in a SQLite file", stage.start_platform()).await?;
    t.detail(platform.url())?;
    let adding = async {
        let user = platform.add_first_user("ann").await.map_err(failed(Code::Failed))?;
        user.ok_or_else(|| Failure::new(Code::Failed, "the new database has a user already"))
    };
    let user = t.step(Who::Platform, "adds the user ann, with a random password", adding).await?;
    let agent = platform.issue_tokens(&user.name, DEFAULT_CLIENT_ID).await.map_err(failed(Code::Failed))?;
    Ok((platform.url(), user, agent.access_token))
}

/// The real sign-in, from the executor's own client to the platform's own pages. Only the browser is ours.
async fn sign_in(
    machine: &Installation,
    t: &Transcript,
    platform: &Url,
    user: &FirstUser,
    projects: &Path,
    http: Client,
) -> Outcome {
    t.chapter("Ann sets her computer up and signs it in")?;
    let root = projects.join(project::NAME);
    let config = configuration(platform, projects, &root);
    let writing = async {
        project::write(projects).map_err(failed(Code::Failed))?;
        machine.configure(&config)
    };
    t.step(Who::Person, "writes config.toml: one folder to share, one program to allow", writing).await?;
    t.detail(&config)?;
    let signing_in = async {
        let loaded =
            Config::load(&machine.config_file(), [], &Overrides::default()).map_err(failed(Code::Failed))?;
        let oauth = executor::oauth_config(&loaded.config, &loaded.platform).map_err(failed(Code::Failed))?;
        let vault = machine.vault().await?;
        let attempt = Attempt::start(&oauth).await.map_err(failed(Code::Failed))?;
        let authorize = attempt.authorize_url().clone();
        let finishing = async { attempt.finish(&vault).await.map_err(failed(Code::Failed)) };
        tokio::try_join!(finishing, Browser::new(http).approve(&authorize, user))?;
        Ok(authorize)
    };
    let authorize = t
        .step(
            Who::Person,
            "signs in and approves in the browser (OAuth, PKCE, loopback redirect)",
            signing_in,
        )
        .await?;
    let redirect = authorize.query_pairs().find(|(name, _)| name == "redirect_uri").map(|(_, value)| value);
    t.detail(format_args!(
        "{}?… → {}",
        &authorize[..url::Position::AfterPath],
        redirect.unwrap_or_default()
    ))?;
    t.detail("tokens are in an encrypted file: this needs no keychain")
}

/// Nobody is asked in a demo: what no rule allows is denied.
fn configuration(platform: &Url, projects: &Path, root: &Path) -> String {
    let program = project::PROGRAM;
    format!(
        "platform_url = {:?}\n\
         display_name = \"Ann's computer\"\n\
         roots = [{projects:?}]\n\
         [capabilities]\n\
         shell = true\n\
         [consent]\n\
         shell = \"deny\"  # usual: \"ask\"\n\
         [[rules]]\n\
         capability = \"shell\"\n\
         program = {program:?}\n\
         root = {root:?}\n\
         decision = \"allow\"\n",
        platform.as_str(),
    )
}

async fn connect<'a>(stage: &mut Stage, t: &'a Transcript, agent: &'a Agent) -> Outcome<Session<'a>> {
    t.chapter("The computer connects, and Ann gives a chat one folder")?;
    let starting = async {
        let mut machine = stage.installation.start()?;
        let listed = tokio::select! {
            listed = agent.machine() => listed,
            () = ending(&mut machine) => Err(Failure::new(Code::Failed, "deskhand run ended by itself")),
        };
        stage.machine = Some(machine);
        listed
    };
    let machine = t
        .step(Who::Machine, "deskhand run: dials the platform; nothing listens here for it", starting)
        .await?;
    let pid = stage.machine.as_ref().and_then(super::machine::Machine::pid).unwrap_or_default();
    t.detail(format_args!(
        "process {pid}, {} {}, protocol {}, offers {}",
        text(&machine["platform"]),
        text(&machine["arch"]),
        text(&machine["protocol_version"]),
        list(&machine["capabilities"])
    ))?;
    let browsing = async {
        let roots = agent.browse(&machine, None).await?;
        let inside = agent.browse(&machine, Some((&roots, &roots["entries"][0]))).await?;
        Ok((names(&roots), inside))
    };
    let (roots, inside) =
        t.step(Who::Person, "looks at the shared folders in the platform's picker", browsing).await?;
    t.detail(format_args!("{roots} / {}", names(&inside)))?;
    ensure(inside["entries"][0]["name"] == project::NAME, format_args!("the picker shows {inside}"))?;
    let creating = agent.create_session(&machine, &inside, &inside["entries"][0]);
    let made = t.step(Who::Person, format_args!("starts a chat in {}", project::NAME), creating).await?;
    let root = PathBuf::from(text(&made["execution_target"]["allowed_root"]));
    t.detail(format_args!("session {}, jailed in {}", text(&made["id"]), root.display()))?;
    Ok(Session { agent, transcript: t, id: text(&made["id"]).to_owned(), root })
}

async fn ending(machine: &mut super::machine::Machine) {
    while machine.ended().is_none() {
        tokio::time::sleep(PAUSE).await;
    }
}

impl Session<'_> {
    /// Calls a tool that shall work.
    async fn works(&self, tool: &str, arguments: Value) -> Outcome<Value> {
        let calling = async {
            match self.agent.tool(&self.id, tool, &arguments).await? {
                Answer::Result(result) => Ok(result),
                Answer::Refused { code, message } => Err(Failure::new(
                    Code::Failed,
                    format!("{tool} {arguments} was refused: {code}: {message}"),
                )),
            }
        };
        self.transcript.step(Who::Agent, format_args!("{tool} {arguments}"), calling).await
    }

    /// Calls a tool that shall be refused.
    async fn is_refused(&self, tool: &str, arguments: Value, expected: &str) -> Outcome {
        let calling = async {
            match self.agent.tool(&self.id, tool, &arguments).await? {
                Answer::Refused { code, message } if code == expected => Ok(format!("{code}: {message}")),
                Answer::Refused { code, message } => Err(Failure::new(
                    Code::Failed,
                    format!("{tool} {arguments} was refused as {code}, not {expected}: {message}"),
                )),
                Answer::Result(result) => {
                    Err(Failure::new(Code::Failed, format!("{tool} {arguments} was not refused: {result}")))
                }
            }
        };
        let why = self.transcript.step(Who::Agent, format_args!("{tool} {arguments}"), calling).await?;
        self.transcript.detail(why)
    }

    /// Runs the project's tests.
    async fn run_tests(&self, exit_code: i64) -> Outcome {
        let result = self.works("bash_exec", json!({"argv": project::TEST})).await?;
        self.transcript.detail(text(&result["stdout"]).trim_end())?;
        self.transcript.detail(format_args!("exit code {}", result["exit_code"]))?;
        ensure(
            result["exit_code"] == exit_code,
            format_args!("the tests ended otherwise than they should: {result}"),
        )
    }
}

async fn mend(session: &Session<'_>) -> Outcome {
    let t = session.transcript;
    t.chapter("The agent finds the fault and mends it")?;
    let found = session.works("glob", json!({"pattern": "**/*"})).await?;
    let paths: Vec<_> =
        found["matches"].as_array().into_iter().flatten().map(|entry| text(&entry["path"])).collect();
    t.detail(paths.join("  "))?;
    ensure(paths.contains(&project::SOURCE), "glob did not find the source")?;
    let readme = session.works("read_file", json!({"path": "README.txt"})).await?;
    t.detail(text(&readme["content"]).trim_end())?;
    session.run_tests(1).await?;
    let (wrong, right) = project::FAULT;
    let found = session.works("grep", json!({"pattern": wrong, "path": "src"})).await?;
    let hit = &found["matches"][0];
    t.detail(format_args!("{}:{}: {}", text(&hit["path"]), hit["line"], text(&hit["text"]).trim()))?;
    let source = session.works("read_file", json!({"path": project::SOURCE})).await?;
    t.detail(text(&source["content"]).trim_end())?;
    let edit = json!({"path": project::SOURCE, "old_string": wrong, "new_string": right});
    let edited = session.works("edit_file", edit).await?;
    ensure(edited["replacements"] == 1, format_args!("edit_file answered {edited}"))?;
    session.run_tests(0).await
}

async fn overreach(session: &Session<'_>) -> Outcome {
    session.transcript.chapter("What the agent may not do")?;
    let (private, secret) = project::PRIVATE;
    session
        .is_refused("read_file", json!({"path": format!("../{private}")}), "PATH_OUTSIDE_ALLOWED_ROOT")
        .await?;
    if cfg!(unix) {
        session
            .transcript
            .note("          notes.txt is a link in the project that leads to the same file:")?;
        session.is_refused("read_file", json!({"path": "notes.txt"}), "PATH_OUTSIDE_ALLOWED_ROOT").await?;
        let write = json!({"path": "notes.txt", "content": "gone"});
        session.is_refused("write_file", write, "PATH_OUTSIDE_ALLOWED_ROOT").await?;
    }
    session.transcript.note(format_args!(
        "          {} is allowed here, and what it runs is not jailed; a shell line is not {0}, it can start anything:",
        project::PROGRAM
    ))?;
    session.is_refused("bash_exec", json!({"command": project::SHELL_LINE}), "CONSENT_REQUIRED").await?;
    let download = json!({"argv": ["curl", "https://example.com/install"]});
    session.is_refused("bash_exec", download, "CONSENT_REQUIRED").await?;
    let kept = session.root.parent().map(|projects| std::fs::read_to_string(projects.join(private)));
    ensure(matches!(kept, Some(Ok(text)) if text == secret), "the file outside the folder was changed")
}

async fn show_log(machine: &Installation, t: &Transcript) -> Outcome {
    t.chapter("What the computer has written down")?;
    let tail =
        t.step(Who::Person, "deskhand audit tail -n 12", machine.say(["audit", "tail", "-n", "12"])).await?;
    t.detail(tail.trim_end())?;
    let report = t.step(Who::Person, "deskhand audit verify", machine.say(["audit", "verify"])).await?;
    t.detail(report.trim_end())
}

async fn kill(machine: &Installation, session: &Session<'_>) -> Outcome {
    let t = session.transcript;
    t.chapter("The kill switch, while a command runs")?;
    let sign = session.root.join(project::SIGN_OF_LIFE);
    let command = json!({"argv": project::LONG});
    let started = Instant::now();
    let calling = async {
        let answer = session.agent.tool(&session.id, "bash_exec", &command).await?;
        Ok::<_, Failure>((answer, started.elapsed()))
    };
    let throwing = async {
        until("the command starts", || lives(&sign)).await?;
        let thrown = Instant::now();
        let said = machine.say(["stop"]).await?;
        let took = thrown.elapsed();
        until("the command dies", || !lives(&sign)).await?;
        Ok::<_, Failure>((said, took))
    };
    let ((answer, ran), (said, took)) = tokio::try_join!(calling, throwing)?;
    t.told(Who::Person, "deskhand stop", took)?;
    t.detail(said.trim_end())?;
    let within =
        milliseconds(&said).ok_or_else(|| Failure::new(Code::Failed, format!("stop said: {said}")))?;
    ensure(within <= KILL_PROMISE, format_args!("the kill switch took {} ms", within.as_millis()))?;
    t.told(Who::Agent, format_args!("bash_exec {command}"), ran)?;
    match answer {
        Answer::Refused { code, message } => t.detail(format_args!("{code}: {message}"))?,
        Answer::Result(result) => ensure(false, format_args!("the command went on: {result}"))?,
    }
    t.detail("(its process is dead)")?;
    session.is_refused("read_file", json!({"path": "README.txt"}), "MACHINE_OFFLINE").await?;
    let status = t.step(Who::Person, "deskhand status", machine.say(["status"])).await?;
    let platform = status.lines().find(|line| line.starts_with("platform")).unwrap_or_default();
    t.detail(platform)?;
    ensure(platform.contains("off"), "the machine is not off")?;
    let report =
        t.step(Who::Person, "deskhand audit verify-all", machine.say(["audit", "verify-all"])).await?;
    t.detail(report.trim_end())
}

/// The first number of `stopped in 12 ms, …`.
fn milliseconds(said: &str) -> Option<Duration> {
    said.split_whitespace().find_map(|word| word.parse().ok()).map(Duration::from_millis)
}

async fn stay(stage: &Stage, session: &Session<'_>, url: &Url, user: &FirstUser) -> Outcome {
    let t = session.transcript;
    t.chapter("Everything stays up until Ctrl-C")?;
    let connecting = async {
        stage.installation.say(["connect"]).await?;
        session.agent.machine().await
    };
    t.step(Who::Person, "deskhand connect", connecting).await?;
    let installation = &stage.installation;
    for (name, value) in [
        ("platform", format!("{url}")),
        ("user", user.name.clone()),
        ("password", user.password.clone()),
        ("console", url.join(&format!("console/{}", session.id)).map_err(failed(Code::Failed))?.to_string()),
        ("folder", session.root.display().to_string()),
        ("log", installation.log.display().to_string()),
        ("status", installation.as_typed("status --watch")),
    ] {
        t.note(format_args!("{name:<9} {value}"))?;
    }
    Ok(())
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        ensure(Instant::now() < deadline, format_args!("did not happen: {what}"))?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> String {
    let words: Vec<_> = value.as_array().into_iter().flatten().map(text).collect();
    words.join(", ")
}

fn names(listing: &Value) -> String {
    let names: Vec<_> =
        listing["entries"].as_array().into_iter().flatten().map(|entry| text(&entry["name"])).collect();
    names.join(", ")
}

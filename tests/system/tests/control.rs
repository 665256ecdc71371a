//! The person's side: kill switch, pause, disconnect, consent, and a log that cannot be written.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::consent::{Answer, End, Prompt, PromptId, Prompter};
use executor::events::{Command, ConnectionState, Event};
use serde_json::json;
use system_tests::rig::{Rig, until, wait_for, wait_for_state};
use system_tests::scripted::Scripted;

/// A person who sees prompts and says nothing until told.
#[derive(Default)]
struct Person {
    seen: Mutex<Vec<Prompt>>,
    withdrawn: Mutex<Vec<PromptId>>,
}

impl Prompter for Person {
    fn show(&self, prompt: &Prompt) {
        self.seen.lock().unwrap().push(prompt.clone());
    }

    fn withdraw(&self, id: &PromptId, _: End) {
        self.withdrawn.lock().unwrap().push(*id);
    }

    fn available(&self) -> bool {
        true
    }
}

impl Person {
    async fn next_prompt(&self, count: usize) -> Prompt {
        until("a prompt is shown", || self.seen.lock().unwrap().len() >= count).await;
        self.seen.lock().unwrap()[count - 1].clone()
    }
}

async fn answer(executor: &executor::Executor, prompt: &Prompt, answer: Answer) {
    // Nobody reads a prompt in less than 700 ms, and an earlier yes is refused.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while executor.consent().answer(&prompt.id, answer).is_err() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kill_switch_ends_everything_and_stays_off_over_a_restart() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    rig.config.max_concurrent = 10;
    let executor = rig.start();
    let mut control = platform.control().await;
    let mut sessions = Vec::new();
    for n in 0..3 {
        let mut data = platform.open(&mut control, &format!("s{n}")).await;
        data.send("EXECUTE_COMMAND", json!({"command": format!("(setsid sleep 304.25 & echo $! > bg{n}); echo $$ > pid{n}; sleep 304.25")})).await;
        sessions.push(data);
    }
    let files: Vec<_> =
        (0..3).flat_map(|n| [rig.root.join(format!("pid{n}")), rig.root.join(format!("bg{n}"))]).collect();
    until("all run", || files.iter().all(|f| std::fs::read_to_string(f).is_ok_and(|t| t.ends_with('\n'))))
        .await;
    let pids: Vec<_> = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    assert!(pids.iter().all(|pid| alive(pid)));

    let switch = executor.kill_switch();
    let took = tokio::task::spawn_blocking(move || switch.throw("test")).await.unwrap().expect("it reports");
    eprintln!("kill switch: {} ms", took.as_millis());
    assert!(pids.iter().all(|pid| !alive(pid)), "every process is dead when it reports");
    control.end().await;
    for data in &mut sessions {
        data.end().await;
    }
    assert!(matches!(executor.status().connection, ConnectionState::Off { .. }));
    assert_eq!(rig.logged("KILL_SWITCH").len(), 1);
    until("commands are logged as cancelled", || rig.logged("EXECUTE_COMMAND").len() == 3).await;
    assert!(rig.logged("EXECUTE_COMMAND").iter().all(|r| r["result"]["error_code"] == "CANCELLED"));

    executor.shutdown("test").await;
    drop(executor);
    let executor = rig.restart().await;
    assert!(!executor.connect_unless_off(), "it stays off");
    executor.command(Command::Connect).await.unwrap();
    platform.control().await;
}

/// `throw` is called from a plain thread while every worker of the runtime is busy.
#[test]
fn the_kill_switch_works_while_the_runtime_hangs() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let outside = tokio::runtime::Runtime::new().unwrap();
    let platform = outside.block_on(Scripted::start());
    let rig = Rig::new(&platform.url);
    let executor = runtime.block_on(async { rig.start() });
    let (mut control, mut data) = outside.block_on(platform.session("s1"));
    outside.block_on(data.send("EXECUTE_COMMAND", json!({"command": "echo $$ > pid; sleep 305.25"})));
    let pid = rig.root.join("pid");
    outside.block_on(until("it runs", || std::fs::read_to_string(&pid).is_ok_and(|t| t.ends_with('\n'))));
    let pid = std::fs::read_to_string(&pid).unwrap();
    let (release, hang) = std::sync::mpsc::channel::<()>();
    let (hanging, hangs) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        hanging.send(()).unwrap();
        let _ = hang.recv();
    });
    hangs.recv().unwrap();
    let took = executor.kill_switch().throw("test").expect("it reports");
    eprintln!("kill switch with a hung runtime: {} ms", took.as_millis());
    assert!(!alive(&pid));
    outside.block_on(async {
        control.end().await;
        data.end().await;
    });
    release.send(()).unwrap();
}

#[tokio::test]
async fn a_pause_refuses_everything_but_ping_and_keeps_the_connection() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start();
    let (mut control, mut data) = platform.session("s1").await;
    executor.command(Command::Pause).await.unwrap();
    for (peer, kind, payload) in
        [(&mut data, "FILE_STAT", json!({"path": "."})), (&mut control, "DIRECTORY_LIST_REQUEST", json!({}))]
    {
        let refused = peer.request(kind, payload).await;
        assert_eq!(
            (&refused.payload["code"], &refused.payload["details"]),
            (&json!("SHIM_OVERLOADED"), &json!({"reason": "paused"}))
        );
        peer.reply("PING", "p", json!({})).await;
        assert_eq!(peer.answer_to("p").await.kind, "PONG");
    }
    executor.command(Command::Resume { session_id: None }).await.unwrap();
    assert_eq!(data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"], true);
    assert_eq!((rig.logged("PAUSED").len(), rig.logged("RESUMED").len()), (1, 1));
}

#[tokio::test]
async fn disconnect_is_remembered_and_connect_undoes_it() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start();
    let (mut control, mut data) = platform.session("s1").await;
    executor.command(Command::Disconnect).await.unwrap();
    control.end().await;
    data.end().await;
    assert!(matches!(executor.status().connection, ConnectionState::Off { .. }));
    assert!(executor.status().sessions.is_empty());
    executor.command(Command::Connect).await.unwrap();
    platform.control().await;
}

#[tokio::test]
async fn a_command_is_asked_for_and_what_runs_is_what_was_shown() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    let person = Arc::new(Person::default());
    rig.config.consent.shell = executor::config::Decision::Ask;
    rig.prompter = Some(person.clone());
    let executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    let id = data.send("EXECUTE_COMMAND", json!({"command": "echo yes\u{202e}", "env": {"A": "b"}})).await;
    let prompt = person.next_prompt(1).await;
    let shown = serde_json::to_string(&prompt).unwrap();
    assert!(shown.contains("echo yes") && !shown.contains('\u{202e}') && shown.contains("A=b"), "{shown}");
    answer(&executor, &prompt, Answer::AllowOnce).await;
    assert_eq!(data.answer_to(&id).await.payload["exit_code"], 0);
    let id = data.send("EXECUTE_COMMAND", json!({"command": "echo no"})).await;
    let prompt = person.next_prompt(2).await;
    answer(&executor, &prompt, Answer::Deny).await;
    let denied = data.answer_to(&id).await.payload;
    assert_eq!(
        (&denied["code"], &denied["details"]),
        (&json!("CONSENT_REQUIRED"), &json!({"reason": "declined", "capability": "shell"}))
    );
    let decisions: Vec<_> = rig.logged("CONSENT").iter().map(|r| r["details"]["decision"].clone()).collect();
    assert_eq!(decisions, [json!("allowed"), json!("declined")]);

    let id = data.send("EXECUTE_COMMAND", json!({"command": "echo bye"})).await;
    let prompt = person.next_prompt(3).await;
    answer(&executor, &prompt, Answer::DenyAndDisconnect).await;
    drop(id);
    data.end().await;
}

#[tokio::test]
async fn a_flood_of_commands_is_refused_before_anybody_is_asked_and_what_is_denied_does_not_count() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    let person = Arc::new(Person::default());
    rig.config.consent.shell = executor::config::Decision::Ask;
    rig.config.rates.commands_per_minute = 2;
    rig.prompter = Some(person.clone());
    let executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    let run = |n: u32| json!({"command": format!("echo {n}")});
    let first = data.send("EXECUTE_COMMAND", run(1)).await;
    let second = data.send("EXECUTE_COMMAND", run(2)).await;
    let prompt = person.next_prompt(1).await;
    until("both wait", || executor.consent().open_prompts().len() == 2).await;
    let third = data.request("EXECUTE_COMMAND", run(3)).await.payload;
    assert_eq!(third["code"], "SHIM_OVERLOADED", "{third}");
    assert!(third["details"]["retry_after_seconds"].as_u64().is_some());
    assert_eq!(executor.consent().open_prompts().len(), 2, "nobody was asked");

    answer(&executor, &prompt, Answer::Deny).await;
    assert_eq!(data.answer_to(&first).await.payload["code"], "CONSENT_REQUIRED");
    let fourth = data.send("EXECUTE_COMMAND", run(4)).await; // in the place of the denied one
    for (count, id) in [(2, &second), (3, &fourth)] {
        let prompt = person.next_prompt(count).await;
        answer(&executor, &prompt, Answer::AllowOnce).await;
        assert_eq!(data.answer_to(id).await.payload["exit_code"], 0);
    }
    // What was carried out counts.
    let fifth = data.request("EXECUTE_COMMAND", run(5)).await.payload;
    assert_eq!(fifth["code"], "SHIM_OVERLOADED", "{fifth}");
    assert_eq!(person.seen.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_prompt_whose_connection_ends_is_withdrawn_and_nothing_runs() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    let person = Arc::new(Person::default());
    rig.config.consent.shell = executor::config::Decision::Ask;
    rig.prompter = Some(person.clone());
    let executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    data.send("EXECUTE_COMMAND", json!({"command": "echo > ran"})).await;
    let prompt = person.next_prompt(1).await;
    drop(data);
    until("it is withdrawn", || person.withdrawn.lock().unwrap().contains(&prompt.id)).await;
    assert!(executor.consent().answer(&prompt.id, Answer::AllowOnce).is_err());
    until("it is logged", || !rig.logged("EXECUTE_COMMAND").is_empty()).await;
    assert_eq!(rig.logged("EXECUTE_COMMAND")[0]["result"]["error_code"], "CANCELLED");
    assert!(!rig.root.join("ran").exists());
}

#[tokio::test]
async fn more_than_five_denials_in_a_row_pause_the_chat_until_it_is_resumed() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    let person = Arc::new(Person::default());
    rig.config.consent.shell = executor::config::Decision::Ask;
    rig.prompter = Some(person.clone());
    let executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    for n in 1..=6 {
        let id = data.send("EXECUTE_COMMAND", json!({"command": format!("echo {n}")})).await;
        let prompt = person.next_prompt(n).await;
        answer(&executor, &prompt, Answer::Deny).await;
        data.answer_to(&id).await;
    }
    let refused = data.request("FILE_STAT", json!({"path": "."})).await.payload;
    assert_eq!(
        (&refused["code"], &refused["details"]["reason"]),
        (&json!("SHIM_OVERLOADED"), &json!("paused"))
    );
    executor.command(Command::Resume { session_id: Some("s1".to_owned()) }).await.unwrap();
    assert_eq!(data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"], true);
}

#[tokio::test]
async fn with_nobody_there_what_no_rule_allows_is_denied() {
    let platform = Scripted::start().await;
    let mut rig = Rig::new(&platform.url);
    rig.config.consent.shell = executor::config::Decision::Ask;
    let _executor = rig.start();
    let (_control, mut data) = platform.session("s1").await;
    let denied = data.request("EXECUTE_COMMAND", json!({"command": "echo > ran"})).await.payload;
    assert_eq!(denied["code"], "CONSENT_REQUIRED");
    assert!(!rig.root.join("ran").exists());
}

#[tokio::test]
async fn nothing_runs_while_the_log_cannot_be_written_and_a_resume_lets_it_go_on() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start();
    let mut events = executor.subscribe();
    let (_control, mut data) = platform.session("s1").await;
    let log = rig.dirs.audit_log();
    let kept = log.with_extension("kept");
    std::fs::rename(&log, &kept).unwrap();
    let refused = data.request("EXECUTE_COMMAND", json!({"command": "echo > ran"})).await.payload;
    assert_eq!(
        (&refused["code"], &refused["details"]["reason"]),
        (&json!("INTERNAL_ERROR"), &json!("audit_log_unavailable"))
    );
    assert!(!rig.root.join("ran").exists(), "nothing runs unaudited");
    wait_for(&mut events, |e| matches!(e, Event::Paused { paused: true, reason: Some(_) })).await;
    let refused = data.request("FILE_STAT", json!({"path": "."})).await;
    assert_eq!(refused.kind, "ERROR");
    std::fs::rename(&kept, &log).unwrap();
    executor.command(Command::Resume { session_id: None }).await.unwrap();
    assert_eq!(data.request("FILE_STAT", json!({"path": "."})).await.payload["exists"], true);
}

#[tokio::test]
async fn a_second_executor_on_the_same_folders_does_not_start() {
    let platform = Scripted::start().await;
    let rig = Rig::new(&platform.url);
    let executor = rig.start_unconnected();
    assert!(rig.try_start().is_err(), "the log has one writer");
    let mut events = executor.subscribe();
    executor.connect_unless_off();
    platform.control().await;
    wait_for_state(&mut events, |s| matches!(s, ConnectionState::Connected { .. })).await;
}

//! What a hijacked agent or a broken prompter might try.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_approval_gives_back_exactly_what_was_asked_for() {
    let rig = Rig::with("[consent]\nscreen = \"allow\"");
    let unasked = rig.ask(action("s", Capability::Screen, "look")).await.unwrap().unwrap();
    assert_eq!(unasked.take(), Ok(payload("look")));
    // Of two that wait at once, each gets its own, whatever order they are answered in.
    let asked = [rig.ask(shell("s", "ls")), rig.ask(shell("s", "ls; rm -rf ~"))];
    rig.waiting(2).await;
    for _ in 0..2 {
        let prompt = rig.shown().await;
        let dangerous = prompt.lines[0].text == "ls; rm -rf ~";
        rig.answer(&prompt, if dangerous { Answer::Deny } else { Answer::AllowOnce }).await;
    }
    let [harmless, dangerous] = asked;
    assert_eq!(harmless.await.unwrap().unwrap().take(), Ok(payload("ls")));
    assert_eq!(dangerous.await.unwrap().unwrap_err().reason, Reason::Declined);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_one_action_is_none_to_another_that_differs_in_anything() {
    let rig = Rig::new();
    let plain = || shell("s", "ls");
    let mut others = [plain(), plain(), plain(), shell("t", "ls"), shell("s", "ls ")];
    others[0].request_type = "FILE_DELETE".into();
    others[1].root = root().join("elsewhere");
    // It looks the same, but more is asked for than is shown.
    others[2].params["env"] = json!({"PATH": "/tmp"});
    let count = others.len();
    let first = rig.ask(plain());
    let prompt = rig.shown().await;
    let asked = others.map(|other| rig.ask(other));
    rig.waiting(1 + count).await;
    assert_eq!(rig.consent.open_prompts().len(), 1 + count);
    rig.answer(&prompt, Answer::AllowOnce).await;
    let _ = first.await.unwrap().unwrap();
    rig.waiting(count).await;
    rig.consent.withdraw_all(Withdrawal::Cancelled);
    for asked in asked {
        asked.await.unwrap().unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_nobody_can_be_shown_is_refused() {
    struct Unwritable;
    impl serde::Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("has no form"))
        }
    }
    let rig = Rig::new();
    let Action { session_id, request_type, capability, root, view, program, .. } = shell("s", "ls");
    let action = Action { session_id, request_type, capability, params: Unwritable, root, view, program };
    assert_eq!(rig.consent.decide(action, &CancellationToken::new()).await.unwrap_err().reason, Reason::Rule);
    assert_eq!(rig.consent.open_prompts(), []);
}

#[tokio::test(start_paused = true)]
async fn allowing_within_the_first_700_ms_is_refused() {
    let rig = Rig::new();
    let asked = rig.ask(shell("s", "ls"));
    let prompt = rig.shown().await;
    let allows = [Answer::AllowOnce, Answer::Allow15Minutes, Answer::AllowChat];
    tokio::time::advance(Duration::from_millis(699)).await;
    for answer in allows {
        assert_eq!(rig.consent.answer(&prompt.id, answer), Err(AnswerError::TooSoon));
    }
    tokio::time::advance(Duration::from_millis(1)).await;
    rig.consent.answer(&prompt.id, Answer::AllowOnce).unwrap();
    let _ = asked.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_not_shown_cannot_be_allowed_but_can_be_denied() {
    let rig = Rig::new();
    let _first = rig.ask(shell("s", "one"));
    rig.shown().await;
    let second = rig.ask(shell("s", "two"));
    rig.waiting(2).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    let hidden = rig.consent.open_prompts()[1].prompt.id;
    assert_eq!(rig.consent.answer(&hidden, Answer::AllowOnce), Err(AnswerError::NotShown));
    rig.consent.answer(&hidden, Answer::Deny).unwrap();
    assert_eq!(second.await.unwrap().unwrap_err().reason, Reason::Declined);
}

#[tokio::test(start_paused = true)]
async fn with_nobody_there_the_answer_is_no_at_once() {
    let rig = Rig::new();
    rig.screen.available.store(false, Ordering::SeqCst);
    let token = CancellationToken::new();
    let denied = rig.consent.decide(shell("s", "ls"), &token).await.unwrap_err();
    assert_eq!((denied.reason, denied.withdrawal), (Reason::Withdrawn, Some(Withdrawal::NobodyThere)));
    assert!(rig.consent.decide(action("s", Capability::Read, "x"), &token).await.is_ok());

    let headless = Consent::new(policy(""), None, |_| {});
    let denied = headless.decide(shell("s", "ls"), &token).await.unwrap_err();
    assert_eq!((denied.reason, denied.facts.waited_ms), (Reason::Rule, 0));
}

#[tokio::test(start_paused = true)]
async fn a_prompter_that_hangs_lets_prompts_run_out_as_denied_and_holds_up_nothing() {
    struct Hung(Mutex<mpsc::Receiver<()>>);
    impl Prompter for Hung {
        fn show(&self, _: &Prompt) {
            let _ = self.0.lock().unwrap().recv();
        }
        fn withdraw(&self, _: &PromptId, _: End) {}
        fn available(&self) -> bool {
            true
        }
    }
    let (release, blocked) = mpsc::channel();
    let consent = Arc::new(Consent::new(policy(""), Some(Arc::new(Hung(Mutex::new(blocked)))), |_| {}));
    let ask = |command: &str| {
        let (consent, action) = (Arc::clone(&consent), shell("s", command));
        tokio::spawn(async move { consent.decide(action, &CancellationToken::new()).await })
    };
    let (first, second) = (ask("one"), ask("two"));
    assert_eq!(first.await.unwrap().unwrap_err().reason, Reason::TimedOut);
    assert_eq!(second.await.unwrap().unwrap_err().reason, Reason::TimedOut);
    let third = ask("three");
    while consent.open_prompts().is_empty() {
        tokio::task::yield_now().await;
    }
    let begun = std::time::Instant::now();
    consent.withdraw_all(Withdrawal::Killed);
    assert!(begun.elapsed() < Duration::from_millis(100));
    assert_eq!(third.await.unwrap().unwrap_err().withdrawal, Some(Withdrawal::Killed));
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn the_kill_switch_ends_prompts_approvals_and_standing_approvals_from_any_thread() {
    let rig = Rig::new();
    let first = rig.ask(shell("s", "one"));
    let prompt = rig.shown().await;
    rig.answer(&prompt, Answer::AllowChat).await;
    let unused = first.await.unwrap().unwrap();
    let open = rig.ask(action("s", Capability::Screen, "look"));
    rig.shown().await;
    let queued = rig.ask(action("s", Capability::Input, "type"));
    rig.waiting(2).await;
    let consent = Arc::clone(&rig.consent);
    std::thread::spawn(move || consent.withdraw_all(Withdrawal::Killed)).join().unwrap();
    for asked in [open, queued] {
        let denied = asked.await.unwrap().unwrap_err();
        assert_eq!((denied.reason, denied.withdrawal), (Reason::Withdrawn, Some(Withdrawal::Killed)));
    }
    assert_eq!(unused.take(), Err(ApprovalWithdrawn));
    assert_eq!(rig.consent.open_prompts(), []);
    assert!(matches!(rig.withdrawn().await, (_, End::Withdrawn(Withdrawal::Killed))));
    let _again = rig.ask(shell("s", "two"));
    assert_eq!(rig.shown().await.lines[0].text, "two");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_or_dropped_request_takes_its_prompt_away() {
    let rig = Rig::new();
    let token = CancellationToken::new();
    let asked = rig.ask_until(shell("s", "one"), token.clone());
    let prompt = rig.shown().await;
    let sharing = rig.ask(shell("s", "one"));
    rig.waiting(2).await;
    token.cancel();
    let denied = asked.await.unwrap().unwrap_err();
    assert_eq!((denied.withdrawal, denied.facts.prompt_id), (Some(Withdrawal::Cancelled), Some(prompt.id)));
    assert_eq!(rig.consent.open_prompts()[0].requests, 1, "another request still waits for it");
    sharing.abort();
    assert_eq!(rig.withdrawn().await, (prompt.id, End::Withdrawn(Withdrawal::Cancelled)));
    assert_eq!(rig.consent.open_prompts(), []);
    let cancelled = rig.consent.decide(action("s", Capability::Read, "x"), &token).await;
    assert_eq!(cancelled.unwrap_err().withdrawal, Some(Withdrawal::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded() {
    let rig = Rig::new();
    let mut asked = Vec::new();
    for n in 0..64 {
        asked.push(rig.ask(shell(&format!("s{n}"), "ls")));
    }
    rig.waiting(64).await;
    let denied = rig.consent.decide(shell("more", "ls"), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(denied.withdrawal, Some(Withdrawal::QueueFull));
    rig.consent.withdraw_all(Withdrawal::Killed);
    for asked in asked {
        asked.await.unwrap().unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn what_hides_in_a_command_is_seen_and_what_is_too_long_is_counted() {
    let rig = Rig::new();
    let command = format!("ls \u{202e}txt.exe\u{1b}[8m{}", "a".repeat(1_000_000));
    let _asked = rig.ask(shell("s\u{200b}", &command));
    let prompt = rig.shown().await;
    assert!(prompt.lines[0].text.starts_with("ls ⟦U+202E⟧txt.exe⟦U+001B⟧[8m"));
    assert!(prompt.lines[0].text.len() < 20_000);
    assert!(prompt.left_out > 980_000);
    assert_eq!(prompt.session_id, "s⟦U+200B⟧");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_of_events_may_call_back() {
    let consent: Arc<std::sync::OnceLock<Arc<Consent>>> = Arc::default();
    let inner = Arc::clone(&consent);
    let (sender, receiver) = mpsc::channel();
    let screen = Screen { seen: Mutex::new(sender), available: AtomicBool::new(true) };
    let built = Arc::new(Consent::new(policy(""), Some(Arc::new(screen)), move |event| {
        if let (ConsentEvent::Opened { prompt }, Some(consent)) = (event, inner.get()) {
            consent.answer(&prompt.id, Answer::DenyAndDisconnect).unwrap();
            consent.end_session("s");
        }
    }));
    assert!(consent.set(Arc::clone(&built)).is_ok());
    let denied = built.decide(shell("s", "ls"), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(denied.reason, Reason::Declined);
    drop(receiver);
}

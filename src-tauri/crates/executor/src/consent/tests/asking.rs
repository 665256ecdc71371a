use super::*;

#[tokio::test(start_paused = true)]
async fn the_prompt_shows_who_asks_and_exactly_what() {
    let rig = Rig::new();
    let asked = rig.ask(shell("chat-1", "git status; rm -rf ~"));
    let prompt = rig.shown().await;
    assert_eq!((prompt.host.as_str(), prompt.session_id.as_str()), ("platform.example", "chat-1"));
    assert_eq!(prompt.lines[0].text, "git status; rm -rf ~");
    assert_eq!(prompt.covers, format!("run any command, started in {}", root().display()));
    assert_eq!(prompt.offers[0], Answer::Deny);
    rig.answer(&prompt, Answer::AllowOnce).await;
    let approved = asked.await.unwrap().unwrap();
    let facts = Facts {
        capability: Capability::Shell,
        decision: "allowed",
        scope: Some(Scope::Once),
        waited_ms: 1000,
        prompt_id: Some(prompt.id),
    };
    assert_eq!(*approved.facts(), facts);
    assert_eq!(approved.take(), Ok(payload("git status; rm -rf ~")));
}

#[tokio::test(start_paused = true)]
async fn allowed_once_is_asked_again() {
    let rig = Rig::new();
    let first = rig.ask(shell("s", "ls"));
    let prompt = rig.shown().await;
    rig.answer(&prompt, Answer::AllowOnce).await;
    let _ = first.await.unwrap().unwrap();
    let second = rig.ask(shell("s", "ls"));
    let prompt = rig.shown().await;
    rig.answer(&prompt, Answer::Deny).await;
    let denied = second.await.unwrap().unwrap_err();
    assert_eq!((denied.reason, denied.facts.decision), (Reason::Declined, "declined"));
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_60_seconds_is_a_denial() {
    let rig = Rig::new();
    let started = tokio::time::Instant::now();
    let asked = rig.ask(shell("s", "ls"));
    let prompt = rig.shown().await;
    let denied = asked.await.unwrap().unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 60);
    assert_eq!((denied.reason, denied.facts.waited_ms / 1000), (Reason::TimedOut, 60));
    assert_eq!(denied.facts.prompt_id, Some(prompt.id));
    assert_eq!(rig.withdrawn().await, (prompt.id, End::TimedOut));
    assert_eq!(rig.consent.answer(&prompt.id, Answer::AllowOnce), Err(AnswerError::NotOpen));
}

#[tokio::test(start_paused = true)]
async fn a_touch_stops_the_countdown() {
    let rig = Rig::new();
    let asked = rig.ask(shell("s", "ls"));
    let prompt = rig.shown().await;
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(rig.consent.open_prompts()[0].seconds_left, Some(1.0));
    assert!(rig.consent.touch(&prompt.id));
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(rig.consent.open_prompts()[0].seconds_left, None);
    rig.answer(&prompt, Answer::AllowOnce).await;
    assert!(asked.await.unwrap().is_ok());
    assert!(!rig.consent.touch(&prompt.id));
}

#[tokio::test(start_paused = true)]
async fn prompts_are_shown_one_at_a_time_in_order_and_waiting_behind_one_costs_no_time() {
    let rig = Rig::new();
    let first = rig.ask(shell("s", "one"));
    let shown = rig.shown().await;
    let second = rig.ask(shell("t", "two"));
    rig.waiting(2).await;
    let views = rig.consent.open_prompts();
    assert_eq!((views[0].shown, views[1].shown, views[1].seconds_left), (true, false, None));
    tokio::time::advance(Duration::from_secs(50)).await;
    rig.answer(&shown, Answer::AllowOnce).await;
    let _ = first.await.unwrap().unwrap();
    let shown = rig.shown().await;
    assert_eq!(shown.lines[0].text, "two");
    tokio::time::advance(Duration::from_secs(50)).await;
    rig.answer(&shown, Answer::AllowOnce).await;
    let _ = second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn equal_requests_of_one_chat_share_one_prompt_and_count_once() {
    let rig = Rig::new();
    let asked = [rig.ask(shell("s", "ls")), rig.ask(shell("s", "ls")), rig.ask(shell("s", "ls"))];
    let other = rig.ask(shell("t", "ls"));
    let prompt = rig.shown().await;
    rig.waiting(4).await;
    assert_eq!(rig.consent.open_prompts().iter().map(|view| view.requests).collect::<Vec<_>>(), [3, 1]);
    rig.answer(&prompt, Answer::AllowOnce).await;
    for asked in asked {
        let _ = asked.await.unwrap().unwrap();
    }
    let prompt = rig.shown().await;
    rig.answer(&prompt, Answer::Deny).await;
    assert_eq!(other.await.unwrap().unwrap_err().reason, Reason::Declined);
}

#[tokio::test(start_paused = true)]
async fn allowing_for_the_chat_settles_what_waits_and_what_comes_in_that_chat_alone() {
    let rig = Rig::new();
    let first = rig.ask(shell("s", "one"));
    let prompt = rig.shown().await;
    let waiting = rig.ask(shell("s", "two"));
    let other_chat = rig.ask(shell("t", "one"));
    let other_class = rig.ask(action("s", Capability::Screen, "look"));
    let mut elsewhere = shell("s", "three");
    elsewhere.root = root().join("elsewhere");
    let other_root = rig.ask(elsewhere);
    rig.waiting(5).await;
    rig.answer(&prompt, Answer::AllowChat).await;
    let _ = first.await.unwrap().unwrap();
    let covered = waiting.await.unwrap().unwrap();
    assert_eq!((covered.facts().scope, covered.facts().prompt_id), (Some(Scope::Chat), Some(prompt.id)));
    let later = rig.consent.decide(shell("s", "four"), &CancellationToken::new()).await.unwrap();
    assert_eq!(later.facts().scope, Some(Scope::Chat));
    for asked in [other_chat, other_class, other_root] {
        let prompt = rig.shown().await;
        rig.answer(&prompt, Answer::Deny).await;
        assert_eq!(asked.await.unwrap().unwrap_err().reason, Reason::Declined);
    }
    // The chat ends, and with it what was allowed for it.
    rig.consent.end_session("s");
    let _again = rig.ask(shell("s", "five"));
    assert_eq!(rig.shown().await.lines[0].text, "five");
}

#[tokio::test(start_paused = true)]
async fn allowing_for_15_minutes_ends_after_15_minutes() {
    let rig = Rig::new();
    let first = rig.ask(shell("s", "one"));
    let prompt = rig.shown().await;
    rig.answer(&prompt, Answer::Allow15Minutes).await;
    let _ = first.await.unwrap().unwrap();
    tokio::time::advance(Duration::from_secs(899)).await;
    let later = rig.consent.decide(shell("s", "two"), &CancellationToken::new()).await.unwrap();
    assert_eq!(later.facts().scope, Some(Scope::FifteenMinutes));
    tokio::time::advance(Duration::from_secs(1)).await;
    let _again = rig.ask(shell("s", "three"));
    assert_eq!(rig.shown().await.lines[0].text, "three");
}

#[tokio::test(start_paused = true)]
async fn each_recording_is_asked_for_on_its_own() {
    let rig = Rig::with(
        "[consent]\nrecording = \"allow\"\n[[rules]]\ncapability = \"recording\"\ndecision = \"allow\"",
    );
    let record = || action("s", Capability::Record, "floor");
    let asked = [rig.ask(record()), rig.ask(record())];
    let prompt = rig.shown().await;
    rig.waiting(2).await;
    assert_eq!(rig.consent.open_prompts().len(), 2);
    assert_eq!(prompt.offers, [Answer::Deny, Answer::AllowOnce, Answer::DenyAndDisconnect]);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(rig.consent.answer(&prompt.id, Answer::AllowChat), Err(AnswerError::NotOffered));
    rig.answer(&prompt, Answer::AllowOnce).await;
    let prompt = rig.shown().await;
    rig.answer(&prompt, Answer::Deny).await;
    let [first, second] = asked;
    let outcomes = [first.await.unwrap().is_ok(), second.await.unwrap().is_ok()];
    assert_eq!(outcomes.iter().filter(|ok| **ok).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn more_than_five_denials_or_time_outs_in_a_row_pause_the_chat_until_it_is_resumed() {
    let rig = Rig::new();
    let deny = async |n: usize, answer: Option<Answer>| {
        let asked = rig.ask(shell("s", &format!("{n}")));
        let prompt = rig.shown().await;
        match answer {
            Some(answer) => rig.answer(&prompt, answer).await,
            None => {
                tokio::time::advance(Duration::from_secs(61)).await;
                assert_eq!(rig.withdrawn().await, (prompt.id, End::TimedOut));
            }
        }
        asked.await.unwrap().is_ok()
    };
    for n in 0..5 {
        deny(n, Some(Answer::Deny)).await;
    }
    assert!(deny(5, Some(Answer::AllowOnce)).await, "an approval begins the count anew");
    for n in 6..11 {
        deny(n, (n % 2 == 0).then_some(Answer::Deny)).await;
    }
    assert!(!rig.consent.is_paused("s"));
    deny(11, Some(Answer::Deny)).await;
    assert!(rig.consent.is_paused("s") && !rig.consent.is_paused("t"));
    assert_eq!(rig.consent.paused_sessions(), ["s"]);

    // Nothing runs, not even what is allowed without asking, and coming again does not help.
    rig.consent.end_session("s");
    let token = CancellationToken::new();
    for capability in [Capability::Read, Capability::Shell] {
        let denied = rig.consent.decide(action("s", capability, "x"), &token).await.unwrap_err();
        assert_eq!(denied.withdrawal, Some(Withdrawal::Paused));
    }
    rig.consent.resume("s");
    assert!(!rig.consent.is_paused("s"));
    assert!(deny(12, Some(Answer::AllowOnce)).await);
    let events = rig.events.lock().unwrap();
    let pauses: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, ConsentEvent::ChatPaused { .. } | ConsentEvent::ChatResumed { .. }))
        .collect();
    assert_eq!(pauses.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn deny_and_disconnect_ends_the_chat_s_other_prompts_and_says_so() {
    let rig = Rig::new();
    let first = rig.ask(shell("s", "one"));
    let prompt = rig.shown().await;
    let second = rig.ask(shell("s", "two"));
    let other = rig.ask(shell("t", "three"));
    rig.waiting(3).await;
    rig.answer(&prompt, Answer::DenyAndDisconnect).await;
    assert_eq!(first.await.unwrap().unwrap_err().reason, Reason::Declined);
    assert_eq!(second.await.unwrap().unwrap_err().withdrawal, Some(Withdrawal::SessionEnded));
    assert_eq!(rig.shown().await.session_id, "t");
    assert!(!other.is_finished());
    let asked = ConsentEvent::DisconnectAsked { session_id: "s".into() };
    assert!(rig.events.lock().unwrap().contains(&asked));
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_prompt_come_in_order() {
    let rig = Rig::new();
    let asked = rig.ask(shell("s", "ls"));
    let prompt = rig.shown().await;
    rig.answer(&prompt, Answer::Deny).await;
    asked.await.unwrap().unwrap_err();
    let (id, session_id) = (prompt.id, "s".to_owned());
    let end = End::Answered(Answer::Deny);
    let expected = [
        ConsentEvent::Opened { prompt: Arc::new(prompt) },
        ConsentEvent::Shown { id },
        ConsentEvent::Closed { id, session_id, end },
    ];
    assert_eq!(*rig.events.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn changed_settings_hold_for_open_prompts() {
    let rig = Rig::new();
    let first = rig.ask(shell("s", "one"));
    let prompt = rig.shown().await;
    let second = rig.ask(action("s", Capability::Screen, "two"));
    rig.waiting(2).await;
    rig.consent.set_policy(policy("[consent]\nshell = \"deny\"\nscreen = \"allow\""));
    assert_eq!(first.await.unwrap().unwrap_err().reason, Reason::Rule);
    assert_eq!(second.await.unwrap().unwrap().facts().scope, Some(Scope::Default));
    assert_eq!(rig.withdrawn().await, (prompt.id, End::Rule));
}

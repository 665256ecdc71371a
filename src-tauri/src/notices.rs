//! Notifications: a chat's first action, its first denial by a rule, a lost sign-in. Never one for each request.

use std::collections::HashSet;

use executor::events::{ConnectionState, Event};
use executor::front::{Front, Snapshot};
use notify_rust::Notification;
use tokio::sync::broadcast::error::RecvError;
use tracing::debug;

/// Watches until the executor ends.
pub(crate) async fn watch(front: Front) {
    let mut events = front.executor().subscribe();
    let mut told = Told::default();
    loop {
        match events.recv().await {
            Ok(event) => {
                if let Some(news) = told.hear(&event) {
                    let (title, text) = news.words(&front.snapshot());
                    show(title, &text).await;
                }
            }
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// What is worth a notification.
#[derive(Debug, PartialEq)]
enum News {
    Started { session: String },
    Refused { session: String, capability: String },
    SignedOut { reason: String },
}

impl News {
    /// A title and a sentence.
    fn words(&self, snapshot: &Snapshot) -> (&'static str, String) {
        let folder = |session: &str| {
            let chat = snapshot.chats.iter().find(|chat| chat.session.session_id == session);
            chat.map_or("a folder", |chat| chat.session.root.as_str())
        };
        match self {
            Self::Started { session } => (
                "An agent has started to work",
                format!("A chat of {} works in {}.", snapshot.platform_host, folder(session)),
            ),
            Self::Refused { session, capability } => (
                "Deskhand has refused an action",
                format!(
                    "The chat in {} wanted to {}. Your settings do not allow it.",
                    folder(session),
                    wish(capability)
                ),
            ),
            Self::SignedOut { reason } => {
                ("Deskhand is signed out", format!("{reason}. Open Deskhand to sign in again."))
            }
        }
    }
}

fn wish(capability: &str) -> &'static str {
    match capability {
        "read" => "read files",
        "write" => "change files",
        "shell" => "run a command",
        "screen" => "see the screen",
        "input" => "type or click",
        "clipboard" => "use the clipboard",
        "recording" => "record",
        _ => "do something", // a newer executor's
    }
}

/// What the person has been told already.
#[derive(Default)]
struct Told {
    greeted: HashSet<String>,
    refused: HashSet<(String, String)>,
    was_connected: bool,
}

impl Told {
    fn hear(&mut self, event: &Event) -> Option<News> {
        match event {
            Event::RequestStarted { session_id: Some(session), .. } => {
                self.greeted.insert(session.clone()).then(|| News::Started { session: session.clone() })
            }
            Event::RefusedByRule { session_id, capability } => {
                let (session, capability) = (session_id.clone(), capability.clone());
                self.refused
                    .insert((session.clone(), capability.clone()))
                    .then_some(News::Refused { session, capability })
            }
            Event::SessionClosed { session_id, .. } => {
                self.greeted.remove(session_id);
                self.refused.retain(|(session, _)| session != session_id);
                None
            }
            Event::Connection { state: ConnectionState::Connected { .. } } => {
                self.was_connected = true;
                None
            }
            Event::Connection { state: ConnectionState::SignedOut { reason } } => {
                std::mem::take(&mut self.was_connected).then(|| News::SignedOut { reason: reason.clone() })
            }
            _ => None, // everything else is in the window
        }
    }
}

/// A desktop without notifications shows none.
async fn show(title: &str, text: &str) {
    let mut notification = Notification::new();
    notification.appname("Deskhand").summary(title).body(text).icon("deskhand");
    #[cfg(all(unix, not(target_os = "macos")))]
    let shown = notification.show_async().await.map(drop);
    #[cfg(not(all(unix, not(target_os = "macos"))))]
    let shown = notification.show().map(drop);
    if let Err(error) = shown {
        debug!(%error, "a notification cannot be shown");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_for_a_chat() {
        let mut told = Told::default();
        let started = Event::RequestStarted {
            session_id: Some("chat".to_owned()),
            request_id: "1".to_owned(),
            op: "FILE_READ".to_owned(),
        };
        let refused =
            |what: &str| Event::RefusedByRule { session_id: "chat".to_owned(), capability: what.to_owned() };
        assert_eq!(told.hear(&started), Some(News::Started { session: "chat".to_owned() }));
        assert_eq!(told.hear(&started), None);
        assert!(told.hear(&refused("shell")).is_some());
        assert_eq!(told.hear(&refused("shell")), None);
        assert!(told.hear(&refused("screen")).is_some());
        told.hear(&Event::SessionClosed { session_id: "chat".to_owned(), reason: String::new() });
        assert!(told.hear(&started).is_some(), "a chat that comes again begins anew");
    }

    #[test]
    fn a_sign_in_is_lost_only_by_who_had_one() {
        let mut told = Told::default();
        let signed_out =
            Event::Connection { state: ConnectionState::SignedOut { reason: "revoked".to_owned() } };
        assert_eq!(told.hear(&signed_out), None);
        told.hear(&Event::Connection { state: ConnectionState::Connected { connection_id: "c".to_owned() } });
        assert_eq!(told.hear(&signed_out), Some(News::SignedOut { reason: "revoked".to_owned() }));
    }
}

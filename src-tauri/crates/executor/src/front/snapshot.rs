//! The state as the tray and the Home page show it.

use super::view::{Chat, Mood, Shortcut, SignIn, Snapshot};
use super::{Front, lock};
use crate::events::{ConnectionState, StatusReport};
use crate::machine::PausedBy;

impl Front {
    /// Everything that the tray and the Home page show, at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shared = &self.shared;
        let report = shared.executor.status();
        let machine = shared.executor.machine();
        let sign_in = shared.door.state();
        let mood = mood(&report, machine.paused_by(), &sign_in);
        let host = machine.platform.host().to_owned();
        let preferences = shared.preferences.get();
        let doing = lock(&shared.doing);
        let what =
            |session: &str| doing.get(session).and_then(|of| of.last()).map(|(_, what)| (*what).to_owned());
        Snapshot {
            mood_text: mood_text(mood, &report, machine.paused_by(), &host),
            chats: report
                .sessions
                .iter()
                .map(|session| Chat { doing: what(&session.session_id), session: session.clone() })
                .collect(),
            version: report.version,
            platform_host: host,
            platform_url: report.platform_url,
            display_name: report.display_name,
            mood,
            connection: report.connection,
            paused: report.paused,
            sign_in,
            prompts: report.prompts,
            has_tray: shared.native.has_tray(),
            shortcut: Shortcut { keys: preferences.shortcut, taken: !shared.native.shortcut_works() },
            first_run: !preferences.first_run_done,
        }
    }
}

fn mood(report: &StatusReport, paused: PausedBy, sign_in: &SignIn) -> Mood {
    match (&report.connection, paused) {
        (_, PausedBy::Log) => Mood::Trouble,
        (ConnectionState::Halted { .. } | ConnectionState::Waiting { .. }, _) => Mood::Trouble,
        // Before the first sign-in nothing is wrong; afterwards something ended it.
        (ConnectionState::SignedOut { .. }, _) => match sign_in {
            SignIn::SignedIn { .. } => Mood::Trouble,
            SignIn::SignedOut | SignIn::Waiting { .. } | SignIn::Failed { .. } => Mood::Off,
        },
        (ConnectionState::Off { .. } | ConnectionState::Connecting, _) => Mood::Off,
        (ConnectionState::Connected { .. }, PausedBy::Person) => Mood::Paused,
        (ConnectionState::Connected { .. }, PausedBy::Nobody) => {
            let busy = report.in_flight > 0 || report.prompts > 0;
            let background = report.sessions.iter().any(|session| !session.background.is_empty());
            if busy || background { Mood::Working } else { Mood::Connected }
        }
    }
}

fn mood_text(mood: Mood, report: &StatusReport, paused: PausedBy, host: &str) -> String {
    match (mood, &report.connection) {
        (_, _) if paused == PausedBy::Log => {
            "Paused: the audit log cannot be written, and nothing runs unlogged".to_owned()
        }
        (Mood::Working, _) => format!("Connected to {host}, a chat is working"),
        (Mood::InControl, _) => format!("Connected to {host}, an agent is in control"),
        (Mood::Recording, _) => format!("Connected to {host}, recording"),
        (Mood::Paused, _) => "Paused: every request is refused".to_owned(),
        (_, ConnectionState::Off { reason }) => format!("Off: {reason}"),
        (_, ConnectionState::Connecting) => format!("Connecting to {host}…"),
        (_, ConnectionState::Connected { .. }) => format!("Connected to {host}"),
        (_, ConnectionState::Waiting { reason, .. }) => format!("Trying to reach {host} again: {reason}"),
        (_, ConnectionState::SignedOut { reason }) => format!("Not signed in: {reason}"),
        (_, ConnectionState::Halted { reason }) => reason.clone(),
    }
}

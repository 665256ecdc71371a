//! What can be set, and what holds when it is not.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::consent::Capability;

/// Every setting. The field names are the keys of `config.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the platform is: `http`, `https`, `ws` or `wss`; see [`super::Platform`].
    pub platform_url: String,
    /// The whole control URL, where it does not follow from `platform_url`.
    pub platform_ws_url: Option<String>,
    /// What the platform's machine picker shows; the host name when absent. See [`Config::display_name`].
    pub display_name: Option<String>,
    /// Folders the agent may be given, as written. See [`Config::roots`].
    pub roots: Vec<String>,
    /// Whether the platform's folder picker may browse the whole home folder and mounted drives.
    pub browse_home: bool,
    /// Whether a delete goes to the OS's trash.
    pub trash: bool,
    /// Requests in flight on one connection, and over all sessions together.
    pub max_concurrent: usize,
    /// Longest run of a command, in seconds.
    pub command_timeout_seconds: u64,
    /// Largest file read or written in one request, in bytes.
    pub max_file_size_bytes: u64,
    /// How the person signs in.
    pub oauth: OAuth,
    /// What is switched on at all.
    pub capabilities: Capabilities,
    /// What is asked about.
    pub consent: Consent,
    /// Exceptions from [`Config::consent`].
    pub rules: Vec<Rule>,
    /// How much a minute.
    pub rates: Rates,
    /// When to dial again.
    pub reconnect: Reconnect,
    /// The local model.
    pub local_llm: LocalLlm,
    /// Recorded workflows.
    pub recording: Recording,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            platform_url: "https://platform.autogpt.net".into(),
            platform_ws_url: None,
            display_name: None,
            roots: vec!["~/Deskhand".into()],
            browse_home: false,
            trash: true,
            max_concurrent: 4,
            command_timeout_seconds: 30,
            max_file_size_bytes: 10 * 1024 * 1024,
            oauth: OAuth::default(),
            capabilities: Capabilities::default(),
            consent: Consent::default(),
            rules: Vec::new(),
            rates: Rates::default(),
            reconnect: Reconnect::default(),
            local_llm: LocalLlm::default(),
            recording: Recording::default(),
        }
    }
}

impl Config {
    /// The machine's name for people: as set, else the host name, else "This computer"; 128 characters at most.
    pub fn display_name(&self) -> String {
        let name = self.display_name.clone().or_else(host_name).unwrap_or_default();
        let name: String = name.trim().chars().filter(|c| !c.is_control()).take(128).collect();
        if name.is_empty() { "This computer".into() } else { name }
    }

    /// [`Config::roots`] with `~` expanded. Not canonical, and not checked to exist.
    pub fn roots(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|root| expand_home(root)).collect()
    }

    /// The keys whose values differ between `old` and this, dotted and sorted; `rules` counts as one key.
    /// It is what `CONFIG_RELOADED` and `SETTINGS_CHANGED` list.
    pub fn diff(&self, old: &Self) -> Vec<String> {
        let (mut now, mut before) = (BTreeSet::new(), BTreeSet::new());
        super::keys::leaves(self, &mut now);
        super::keys::leaves(old, &mut before);
        let keys: BTreeSet<_> = now.symmetric_difference(&before).map(|(key, _)| key.clone()).collect();
        keys.into_iter().collect()
    }
}

/// `~` and `~/…` become the home folder; every other text is taken as it is.
pub fn expand_home(text: &str) -> PathBuf {
    let rest = match text.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') || (cfg!(windows) && rest.starts_with('\\')) => &rest[1..],
        Some(_) | None => return PathBuf::from(text),
    };
    match directories::BaseDirs::new() {
        Some(base) if rest.is_empty() => base.home_dir().to_path_buf(),
        Some(base) => base.home_dir().join(rest.trim_start_matches(['/', std::path::MAIN_SEPARATOR])),
        None => Path::new(text).to_path_buf(),
    }
}

fn host_name() -> Option<String> {
    #[cfg(unix)]
    {
        Some(rustix::system::uname().nodename().to_string_lossy().into_owned())
    }
    #[cfg(windows)]
    {
        std::env::var("COMPUTERNAME").ok()
    }
}

/// `[oauth]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OAuth {
    /// The client id that the platform knows.
    pub client_id: String,
    /// How the browser comes back.
    pub redirect: Redirect,
}

impl Default for OAuth {
    fn default() -> Self {
        Self { client_id: "autogpt-local-executor".into(), redirect: Redirect::Auto }
    }
}

/// Where the browser is sent after signing in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redirect {
    /// Loopback, and the deep link where no port is free.
    Auto,
    /// `http://localhost:{port}/callback`
    Loopback,
    /// `deskhand://oauth/callback`
    DeepLink,
}

/// `[capabilities]`: off until switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// Commands.
    pub shell: bool,
    /// Screen, input, windows, apps.
    pub computer_use: ComputerUse,
    /// The clipboard.
    pub clipboard: Clipboard,
    /// The local model.
    pub local_llm: bool,
    /// Recording workflows.
    pub recording: bool,
    /// Serial, USB and GPIO devices.
    pub hardware: bool,
}

/// The four switches of computer use; written as `true`, `false`, or a list of the ones that are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComputerUse {
    /// See the screen.
    pub screen: bool,
    /// Type and click.
    pub input: bool,
    /// List and focus windows.
    pub windows: bool,
    /// List and launch programs.
    pub apps: bool,
}

impl ComputerUse {
    /// All four on.
    pub const ALL: Self = Self { screen: true, input: true, windows: true, apps: true };

    /// Whether anything is on.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

impl Serialize for ComputerUse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names =
            [(self.screen, "screen"), (self.input, "input"), (self.windows, "windows"), (self.apps, "apps")];
        serializer.collect_seq(names.into_iter().filter(|(on, _)| *on).map(|(_, name)| name))
    }
}

impl<'de> Deserialize<'de> for ComputerUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Switches;

        impl<'de> Visitor<'de> for Switches {
            type Value = ComputerUse;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"true, false, or a list of "screen", "input", "windows", "apps""#)
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<ComputerUse, E> {
                Ok(if on { ComputerUse::ALL } else { ComputerUse::default() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ComputerUse, A::Error> {
                let mut switches = ComputerUse::default();
                while let Some(name) = seq.next_element::<String>()? {
                    match name.as_str() {
                        "screen" => switches.screen = true,
                        "input" => switches.input = true,
                        "windows" => switches.windows = true,
                        "apps" => switches.apps = true,
                        other => return Err(de::Error::invalid_value(de::Unexpected::Str(other), &self)),
                    }
                }
                Ok(switches)
            }
        }

        deserializer.deserialize_any(Switches)
    }
}

/// What the agent may do with the clipboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clipboard {
    /// Nothing.
    #[default]
    Off,
    /// Write, and read back what it wrote itself within 30 s.
    WriteBack,
    /// Write, and read anything.
    Read,
}

/// `[consent]`: what is decided for a class of actions where no rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Consent {
    /// [`Capability::Read`]
    pub read: Decision,
    /// [`Capability::Write`]
    pub write: Decision,
    /// [`Capability::Shell`]
    pub shell: Decision,
    /// [`Capability::Screen`]
    pub screen: Decision,
    /// [`Capability::Input`]
    pub input: Decision,
    /// [`Capability::Clipboard`]
    pub clipboard: Decision,
    /// [`Capability::Record`]; `allow` counts for the headless run alone.
    pub recording: Decision,
}

impl Default for Consent {
    fn default() -> Self {
        Self {
            read: Decision::Allow,
            write: Decision::Allow,
            shell: Decision::Ask,
            screen: Decision::Ask,
            input: Decision::Ask,
            clipboard: Decision::Ask,
            recording: Decision::Ask,
        }
    }
}

impl Consent {
    /// The setting for one capability.
    pub fn of(&self, capability: Capability) -> Decision {
        match capability {
            Capability::Read => self.read,
            Capability::Write => self.write,
            Capability::Shell => self.shell,
            Capability::Screen => self.screen,
            Capability::Input => self.input,
            Capability::Clipboard => self.clipboard,
            Capability::Record => self.recording,
        }
    }
}

/// What happens to an action before anybody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow,
    /// The person is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// One `[[rules]]` table; how rules are matched is [`crate::consent::Policy`]'s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The class of actions.
    pub capability: Capability,
    /// A program, by name or full path; with `capability = "shell"` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// A folder, `~` allowed: sessions whose root is it or lies below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What then.
    pub decision: Decision,
}

/// `[rates]`: sliding windows of one minute, for the whole machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Commands started.
    pub commands_per_minute: u32,
    /// Screenshots taken; 120 at most.
    pub screenshots_per_minute: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Self { commands_per_minute: 60, screenshots_per_minute: 10 }
    }
}

/// `[reconnect]`: `min(2^attempt · base, max) + uniform(0..jitter)`, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reconnect {
    /// The first delay.
    pub base_seconds: f64,
    /// The longest delay.
    pub max_seconds: f64,
    /// At most this much is added by chance.
    pub jitter_seconds: f64,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { base_seconds: 1.0, max_seconds: 60.0, jitter_seconds: 5.0 }
    }
}

/// `[local_llm]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalLlm {
    /// Where the model answers.
    pub url: String,
}

impl Default for LocalLlm {
    fn default() -> Self {
        Self { url: "http://127.0.0.1:11434".into() }
    }
}

/// `[recording]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recording {
    /// How many recordings stay.
    pub keep: u32,
    /// For how many days.
    pub keep_days: u32,
    /// Whether the platform's own review counts.
    pub platform_review: bool,
}

impl Default for Recording {
    fn default() -> Self {
        Self { keep: 20, keep_days: 30, platform_review: false }
    }
}

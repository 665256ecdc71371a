//! What is decided without asking.
//!
//! Of the rules that match an action a `deny` wins over an `ask`, and an `ask` over an `allow`, wherever they
//! stand in the file; where none matches, the class's setting in `[consent]` holds.
//!
//! Rules that refuse reach wide and rules that allow reach narrow. `allow` with a program matches an argument
//! list whose first word our own `PATH` resolves to exactly the file that the rule's program resolved to when
//! the rules were read, that lies outside the session's folder, and that sets no variable which decides what
//! code runs. `deny` and `ask` match every argument list whose program has that name. No rule with a program
//! matches a shell line: `git status; rm -rf ~` is not `git`, and a line can start anything.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::action::Action;
use super::capability::Capability;
use super::outcome::Scope;
use super::program::{self, fold};
use crate::config::{self, Config, Decision, expand_home};

/// The settings of consent, ready to be asked.
#[derive(Clone, Debug)]
pub struct Policy {
    host: String,
    headless: bool,
    classes: config::Consent,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    capability: Capability,
    program: Option<Program>,
    root: Option<[PathBuf; 2]>,
    decision: Decision,
}

#[derive(Clone, Debug)]
struct Program {
    name: String,
    path: Option<PathBuf>,
}

/// What the settings say to one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow(Scope),
    Ask,
    Deny,
}

impl Policy {
    /// `host` is the platform as prompts name it. `headless` says that this is `deskhand run`, the one place
    /// where a setting may allow a recording.
    pub fn new(config: &Config, host: impl Into<String>, headless: bool) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::in_path(config, host, headless, &path)
    }

    pub(super) fn in_path(config: &Config, host: impl Into<String>, headless: bool, path: &OsStr) -> Self {
        let rules = config.rules.iter().map(|rule| Rule {
            capability: rule.capability,
            program: rule.program.as_deref().map(|text| {
                let program = expand_home(text);
                let path = program::find(&program.to_string_lossy(), path);
                Program { name: program::name_of(&program), path }
            }),
            root: rule.root.as_deref().map(|root| {
                let written = expand_home(root);
                // A session's root is canonical; a rule's may be written through a link.
                let real = std::fs::canonicalize(&written).unwrap_or_else(|_| written.clone());
                [fold(&written), fold(&real)]
            }),
            decision: rule.decision,
        });
        Self { host: host.into(), headless, classes: config.consent.clone(), rules: rules.collect() }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn verdict(&self, action: &Subject<'_>) -> Verdict {
        let matching =
            |decision| self.rules.iter().any(|rule| rule.decision == decision && rule.matches(action));
        let allowed = |scope| {
            // In the app somebody is there to be asked, for each recording.
            let asks = action.capability == Capability::Record && !self.headless;
            if asks { Verdict::Ask } else { Verdict::Allow(scope) }
        };
        if matching(Decision::Deny) {
            Verdict::Deny
        } else if matching(Decision::Ask) {
            Verdict::Ask
        } else if matching(Decision::Allow) {
            allowed(Scope::Rule)
        } else {
            match self.classes.of(action.capability) {
                Decision::Allow => allowed(Scope::Default),
                Decision::Ask => Verdict::Ask,
                Decision::Deny => Verdict::Deny,
            }
        }
    }
}

/// The parts of an action that rules look at.
pub(super) struct Subject<'a> {
    pub(super) capability: Capability,
    pub(super) root: &'a Path,
    pub(super) program: &'a program::ProgramMatch,
}

impl<'a, P> From<&'a Action<P>> for Subject<'a> {
    fn from(action: &'a Action<P>) -> Self {
        Self { capability: action.capability, root: &action.root, program: &action.program }
    }
}

impl Rule {
    fn matches(&self, action: &Subject<'_>) -> bool {
        let narrow = self.decision == Decision::Allow;
        let program = self.program.as_ref().is_none_or(|program| match &program.path {
            Some(path) if narrow => action.program.is(path, action.root),
            None if narrow => false,
            Some(_) | None => action.program.may_be(&program.name),
        });
        let root = self.root.as_ref().is_none_or(|roots| {
            let asked = fold(action.root);
            roots.iter().any(|root| asked.starts_with(root))
        });
        self.capability == action.capability && program && root
    }
}

//! Which settings and rules decide what, without asking.

use std::ffi::OsStr;
use std::path::Path;

use proptest::prelude::*;

use super::super::policy::{Subject, Verdict};
use super::super::program::ProgramMatch;
use super::*;
use crate::config::{Decision, Rule};

/// A folder with programs, as `PATH`.
struct Programs(tempfile::TempDir);

impl Programs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["git", "rm", "ls"] {
            let file = folder.path().join(if cfg!(windows) { format!("{name}.exe") } else { name.into() });
            std::fs::write(&file, "").unwrap();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        Self(folder)
    }

    fn path(&self) -> &OsStr {
        self.0.path().as_os_str()
    }

    fn verdict(&self, config: &str, program: &ProgramMatch) -> Verdict {
        self.verdict_in(config, program, &root())
    }

    fn verdict_in(&self, config: &str, program: &ProgramMatch, root: &Path) -> Verdict {
        let policy = Policy::in_path(&settings(config), "", false, self.path());
        policy.verdict(&Subject { capability: Capability::Shell, root, program })
    }

    fn argv(&self, program: &str, variables: &[&str]) -> ProgramMatch {
        ProgramMatch::in_path(program, variables.iter().copied(), self.path())
    }
}

const ALLOW_GIT: &str = "[[rules]]\ncapability = \"shell\"\nprogram = \"git\"\ndecision = \"allow\"\n";

#[test]
fn without_rules_each_class_has_its_documented_default() {
    let policy = policy("");
    let program = ProgramMatch::none();
    for capability in Capability::ALL {
        let verdict = policy.verdict(&Subject { capability, root: &root(), program: &program });
        let expected = match capability {
            Capability::Read | Capability::Write => Verdict::Allow(Scope::Default),
            Capability::Shell
            | Capability::Screen
            | Capability::Input
            | Capability::Clipboard
            | Capability::Record => Verdict::Ask,
        };
        assert_eq!(verdict, expected, "{capability}");
    }
}

#[test]
fn a_program_s_rule_matches_that_program_and_no_shell_line() {
    let programs = Programs::new();
    let full = programs.0.path().join(if cfg!(windows) { "git.exe" } else { "git" });
    let full = full.to_str().unwrap();
    for program in ["git", full] {
        let verdict = programs.verdict(ALLOW_GIT, &programs.argv(program, &["LANG"]));
        assert_eq!(verdict, Verdict::Allow(Scope::Rule), "{program}");
    }
    for program in ["rm", "./git", "bin/git", "/elsewhere/git", "git status", ""] {
        let verdict = programs.verdict(ALLOW_GIT, &programs.argv(program, &[]));
        assert_eq!(verdict, Verdict::Ask, "{program}");
    }
    // `git status; rm -rf ~`
    assert_eq!(programs.verdict(ALLOW_GIT, &ProgramMatch::none()), Verdict::Ask);
}

#[test]
fn a_request_that_sets_a_variable_which_decides_what_runs_is_never_allowed_by_a_program_s_rule() {
    let programs = Programs::new();
    for variable in [
        "PATH",
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "PERL5LIB",
        "RUBYOPT",
        "GIT_SSH_COMMAND",
    ] {
        let argv = programs.argv("git", &["LANG", variable]);
        assert_eq!(programs.verdict(ALLOW_GIT, &argv), Verdict::Ask, "{variable}");
    }
}

#[test]
fn a_program_put_before_the_real_one_later_is_not_the_one_the_rule_meant() {
    let programs = Programs::new();
    let policy = Policy::in_path(&settings(ALLOW_GIT), "", false, programs.path());
    let other = Programs::new();
    let program = ProgramMatch::in_path("git", [], other.path());
    let verdict =
        policy.verdict(&Subject { capability: Capability::Shell, root: &root(), program: &program });
    assert_eq!(verdict, Verdict::Ask);
}

#[test]
fn deny_wins_over_ask_and_ask_over_allow_wherever_they_stand() {
    let programs = Programs::new();
    let rule = |decision: &str, extra: &str| {
        format!("[[rules]]\ncapability = \"shell\"\ndecision = \"{decision}\"\n{extra}\n")
    };
    let (allow, ask) = (rule("allow", ""), rule("ask", ""));
    let deny_rm = rule("deny", "program = \"rm\"");
    let rm = programs.argv("rm", &[]);
    for config in [format!("{allow}{deny_rm}"), format!("{deny_rm}{allow}")] {
        assert_eq!(programs.verdict(&config, &rm), Verdict::Deny);
        assert_eq!(programs.verdict(&config, &programs.argv("ls", &[])), Verdict::Allow(Scope::Rule));
        // By another path and with another PATH it is still called rm.
        assert_eq!(programs.verdict(&config, &programs.argv("/elsewhere/rm", &["PATH"])), Verdict::Deny);
    }
    assert_eq!(programs.verdict(&format!("{allow}{ask}"), &rm), Verdict::Ask);
    // A rule that allows wins over a class that is denied, and a denied class over no rule.
    let denied = "[consent]\nshell = \"deny\"\n";
    assert_eq!(
        programs.verdict(&format!("{denied}{ALLOW_GIT}"), &programs.argv("git", &[])),
        Verdict::Allow(Scope::Rule)
    );
    assert_eq!(programs.verdict(denied, &rm), Verdict::Deny);
}

#[test]
fn a_rule_with_a_root_holds_in_that_folder_and_below_it() {
    let programs = Programs::new();
    let folder = tempfile::tempdir().unwrap();
    let work = std::fs::canonicalize(folder.path()).unwrap();
    let config = |root: &Path| {
        let root = toml::Value::from(root.to_str().unwrap());
        format!("[[rules]]\ncapability = \"shell\"\ndecision = \"allow\"\nroot = {root}\n")
    };
    let rule = config(&work.join("work"));
    for (root, expected) in [
        (work.join("work"), Verdict::Allow(Scope::Rule)),
        (work.join("work").join("deep"), Verdict::Allow(Scope::Rule)),
        (work.join("workshop"), Verdict::Ask),
        (work.clone(), Verdict::Ask),
    ] {
        assert_eq!(programs.verdict_in(&rule, &ProgramMatch::none(), &root), expected, "{root:?}");
    }
    #[cfg(unix)]
    {
        std::fs::create_dir(work.join("real")).unwrap();
        std::os::unix::fs::symlink(work.join("real"), work.join("link")).unwrap();
        let verdict =
            programs.verdict_in(&config(&work.join("link")), &ProgramMatch::none(), &work.join("real"));
        assert_eq!(verdict, Verdict::Allow(Scope::Rule), "a rule's folder may be written through a link");
    }
}

#[test]
fn a_recording_is_allowed_by_settings_in_the_headless_run_alone_and_denied_everywhere() {
    let config = settings("[consent]\nrecording = \"allow\"");
    let program = ProgramMatch::none();
    let root = root();
    let subject = Subject { capability: Capability::Record, root: &root, program: &program };
    assert_eq!(Policy::new(&config, "", true).verdict(&subject), Verdict::Allow(Scope::Default));
    assert_eq!(Policy::new(&config, "", false).verdict(&subject), Verdict::Ask);
    let denied = settings("[consent]\nrecording = \"deny\"");
    assert_eq!(Policy::new(&denied, "", false).verdict(&subject), Verdict::Deny);
}

fn decisions() -> impl Strategy<Value = Decision> {
    prop_oneof![Just(Decision::Allow), Just(Decision::Ask), Just(Decision::Deny)]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let capability = proptest::sample::select(&Capability::ALL[..]);
    let program = proptest::option::of(proptest::sample::select(vec!["git", "rm", "nowhere"]));
    let rule = (capability, program, proptest::option::of(Just(root())), decisions());
    let rule = rule.prop_map(|(capability, program, root, decision)| Rule {
        capability,
        program: program.filter(|_| capability == Capability::Shell).map(String::from),
        root: root.map(|root| root.to_string_lossy().into_owned()),
        decision,
    });
    proptest::collection::vec(rule, 0..6)
}

proptest! {
    #[test]
    fn the_order_of_rules_never_matters_and_one_more_denial_never_allows(
        mut rules in rules(),
        class in decisions(),
        capability in proptest::sample::select(&Capability::ALL[..]),
        program in proptest::sample::select(vec!["git", "rm", "ls"]),
        tampered: bool,
        line: bool,
    ) {
        let mut config = Config::default();
        config.consent.shell = class;
        config.consent.read = class;
        let variables: &[&str] = if tampered { &["LD_PRELOAD"] } else { &[] };
        let program = if line { ProgramMatch::none() } else { PROGRAMS.with(|programs| programs.argv(program, variables)) };
        let root = root();
        let subject = Subject { capability, root: &root, program: &program };
        let verdict = |rules: &[Rule]| {
            let config = Config { rules: rules.to_vec(), ..config.clone() };
            PROGRAMS.with(|programs| Policy::in_path(&config, "", false, programs.path()).verdict(&subject))
        };
        let before = verdict(&rules);
        rules.reverse();
        prop_assert_eq!(verdict(&rules), before);
        if line || tampered {
            // No rule with a program allows it: without those rules, what was not allowed still is not.
            let without: Vec<_> = rules
                .iter()
                .filter(|rule| rule.program.is_none() || rule.decision != Decision::Allow)
                .cloned()
                .collect();
            prop_assert_eq!(verdict(&without), before);
        }
        rules.push(Rule { capability, program: None, root: None, decision: Decision::Deny });
        prop_assert_eq!(verdict(&rules), Verdict::Deny);
    }
}

thread_local! {
    static PROGRAMS: Programs = Programs::new();
}

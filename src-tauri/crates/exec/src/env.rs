//! The environment a command gets: a clean baseline, then the request's.

use std::ffi::{OsStr, OsString};

#[cfg(unix)]
const BASELINE: &[&str] = &["HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "SHELL"];

#[cfg(windows)]
const BASELINE: &[&str] = &[
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "PATH",
    "SystemRoot",
    "TEMP",
    "TMP",
    "ComSpec",
    "OS",
    "windir",
    "LOCALAPPDATA",
    "APPDATA",
];

/// What POSIX systems search when nothing sets PATH (a service started with an empty environment).
#[cfg(unix)]
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// The variables of our own environment that every command gets, and no others: wire.md, "Commands". Whatever
/// else is in our environment may be a secret.
pub fn baseline_env() -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = std::env::vars_os().filter(|(name, _)| is_baseline(name)).collect();
    #[cfg(unix)]
    if !env.iter().any(|(name, _)| name == "PATH") {
        env.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    env.sort();
    env
}

#[cfg(unix)]
fn is_baseline(name: &OsStr) -> bool {
    BASELINE.iter().any(|wanted| name == *wanted) || name.as_encoded_bytes().starts_with(b"LC_")
}

#[cfg(windows)]
fn is_baseline(name: &OsStr) -> bool {
    BASELINE.iter().any(|wanted| same_name(OsStr::new(wanted), name))
}

/// The baseline with the request's variables over it.
pub(crate) fn command_env(request: &[(String, String)]) -> Vec<(OsString, OsString)> {
    merge(baseline_env(), request)
}

fn merge(mut env: Vec<(OsString, OsString)>, request: &[(String, String)]) -> Vec<(OsString, OsString)> {
    for (name, value) in request {
        env.retain(|(existing, _)| !same_name(existing, OsStr::new(name)));
        env.push((name.into(), value.into()));
    }
    env
}

/// Of a variable of `env`, by the OS's idea of equal names.
pub(crate) fn lookup<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    env.iter().find(|(existing, _)| same_name(existing, OsStr::new(name))).map(|(_, value)| value.as_os_str())
}

#[cfg(unix)]
fn same_name(a: &OsStr, b: &OsStr) -> bool {
    a == b
}

#[cfg(windows)]
fn same_name(a: &OsStr, b: &OsStr) -> bool {
    match (a.to_str(), b.to_str()) {
        (Some(a), Some(b)) => a.to_uppercase() == b.to_uppercase(),
        (_, _) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_goes_over_the_baseline_and_the_last_of_a_name_counts() {
        let base = vec![("PATH".into(), "/bin".into()), ("TZ".into(), "UTC".into())];
        let request = [("TZ", "CET"), ("A", "1"), ("A", "2")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let env = merge(base, &request);
        assert_eq!(
            env,
            [("PATH", "/bin"), ("TZ", "CET"), ("A", "2")]
                .map(|(n, v)| (OsString::from(n), OsString::from(v)))
        );
    }

    #[cfg(windows)]
    #[test]
    fn names_fold_by_case() {
        let env = merge(vec![("Path".into(), "C:\\".into())], &[("PATH".to_owned(), "D:\\".to_owned())]);
        assert_eq!(env, [(OsString::from("PATH"), OsString::from("D:\\"))]);
    }

    #[cfg(unix)]
    #[test]
    fn names_differ_by_case() {
        let env = merge(vec![("Path".into(), "a".into())], &[("PATH".to_owned(), "b".to_owned())]);
        assert_eq!(env.len(), 2);
    }

    #[test]
    fn only_named_variables_are_baseline() {
        for name in ["DESKHAND_KEYCHAIN_PASSPHRASE", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "SSH_AUTH_SOCK"] {
            assert!(!is_baseline(OsStr::new(name)), "{name}");
        }
        assert!(is_baseline(OsStr::new("PATH")));
    }
}

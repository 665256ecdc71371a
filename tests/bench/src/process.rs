//! What Linux says of processes, in `/proc`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// A process by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Pid(pub(crate) u32);

impl Pid {
    fn file(self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.0.to_string()).join(name)
    }

    /// Whether it runs: one that ended and that nobody has waited for yet does not.
    pub(crate) fn is_alive(self) -> bool {
        stat(self).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
    }

    /// The end of its program's path; none when that is not for us to know.
    fn program(self) -> Option<PathBuf> {
        fs::read_link(self.file("exe")).ok()
    }

    /// Its proportional set size in MB (10⁶ bytes), or where only root may know that its resident set size, which is larger.
    pub(crate) fn pss_mb(self) -> Result<f64> {
        let text = fs::read_to_string(self.file("smaps_rollup"))
            .or_else(|_| fs::read_to_string(self.file("status")))
            .with_context(|| format!("/proc knows nothing of process {}", self.0))?;
        let kib = ["Pss:", "VmRSS:"].iter().find_map(|key| kib(&text, key));
        Ok(kib.context("no memory figures")? * 1024.0 / 1e6)
    }

    /// The most memory it ever had resident, in MB.
    pub(crate) fn peak_rss_mb(self) -> f64 {
        let text = fs::read_to_string(self.file("status")).unwrap_or_default();
        kib(&text, "VmHWM:").unwrap_or_default() * 1024.0 / 1e6
    }

    /// Nanoseconds that each of its threads ran.
    pub(crate) fn cpu(self) -> HashMap<String, u64> {
        let mut threads = HashMap::new();
        for entry in fs::read_dir(self.file("task")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
            if let Some(ran) = text.split_whitespace().next().and_then(|field| field.parse().ok()) {
                threads.insert(entry.file_name().to_string_lossy().into_owned(), ran);
            }
        }
        threads
    }

    /// It and all below it.
    pub(crate) fn tree(self) -> Vec<Pid> {
        let parents = parents();
        let mut tree = vec![self];
        let mut next = 0;
        while let Some(parent) = tree.get(next).copied() {
            tree.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            next += 1;
        }
        tree
    }

    /// It and those below it that run the same program: a command's supervisor does, a command does not.
    pub(crate) fn own_tree(self) -> Vec<Pid> {
        let program = self.program();
        self.tree().into_iter().filter(|pid| *pid == self || pid.program() == program).collect()
    }

    /// The name of its program.
    pub(crate) fn name(self) -> String {
        fs::read_to_string(self.file("comm")).unwrap_or_default().trim_end().to_owned()
    }
}

/// The sum over all of them that still run.
pub(crate) fn pss_mb(pids: &[Pid]) -> f64 {
    pids.iter().filter_map(|pid| pid.pss_mb().ok()).sum()
}

/// Fails where there is no `/proc`.
pub(crate) fn need_proc() -> Result<()> {
    if cfg!(target_os = "linux") { Ok(()) } else { bail!("measured on Linux only") }
}

struct Stat {
    state: char,
    parent: Pid,
}

fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read_to_string(pid.file("stat")).ok()?;
    // The name, in parentheses, may have anything in it.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some(Stat { state: fields.next()?.chars().next()?, parent: Pid(fields.next()?.parse().ok()?) })
}

fn parents() -> Vec<(Pid, Pid)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid));
    pids.filter_map(|pid| Some((pid, stat(pid)?.parent))).collect()
}

fn kib(text: &str, key: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_suffix(" kB")?.parse().ok())
}

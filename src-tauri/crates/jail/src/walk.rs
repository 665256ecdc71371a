//! From steps to a place: the walk that every operation starts with.
//!
//! Each directory is opened in the one before, never through a link. A link is read and its text walked like the rest of
//! the path, an absolute one from the root when its text begins with the root's path. `..` goes back to the directory
//! that was come from. So whatever is renamed meanwhile, a handle reached is a directory that was beneath the root.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Fault, Outcome};
use crate::request::{Step, Steps, text};
use crate::root::Root;
use crate::sys::Dir;
use crate::trail::Trail;
use crate::types::{Identity, Kind};

/// Links that one path may go through, as in Linux.
pub const MAX_LINKS: usize = 40;

/// Times that an operation starts over when somebody renames things under it.
const TRIES: usize = 16;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Spot {
    /// The directory reached.
    pub(crate) trail: Trail,
    /// Names below it: none when it is meant itself, one for an entry that is or is not there, more when folders are
    /// missing.
    pub(crate) rest: Vec<OsString>,
    /// Only a directory can be meant.
    pub(crate) dir_only: bool,
    /// Set when nothing can be there, nor be made there: a file is in the way, or `..` comes after a missing name.
    pub(crate) barred: Option<Barred>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    ByFile,
    ByMissing,
}

/// A name in a directory.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) trail: Trail,
    pub(crate) name: OsString,
}

impl Place {
    pub(crate) fn dir(&self) -> Arc<Dir> {
        self.trail.dir()
    }

    /// Names from the root down.
    pub(crate) fn names(&self) -> Vec<OsString> {
        self.trail.names().chain([self.name.as_os_str()]).map(OsStr::to_owned).collect()
    }
}

impl Spot {
    /// The entry meant, its folder being there. What is the root itself, which has no name in anything, is outside.
    pub(crate) fn into_place(mut self) -> Outcome<Place> {
        match (self.barred, self.rest.len()) {
            (Some(Barred::ByFile), _) => Err(Fault::NotADirectory),
            (Some(Barred::ByMissing), _) | (None, 2..) => Err(Fault::NotFound),
            (None, 0) => match self.trail.leave()? {
                Some(name) => Ok(Place { trail: self.trail, name }),
                None => Err(Fault::Outside),
            },
            (None, 1) => Ok(Place { name: self.rest.remove(0), trail: self.trail }),
        }
    }

    /// The directory meant.
    pub(crate) fn into_dir(mut self) -> Outcome<Trail> {
        match (self.barred, self.rest.len()) {
            (Some(Barred::ByFile), _) => Err(Fault::NotADirectory),
            (Some(Barred::ByMissing), _) | (None, 2..) => Err(Fault::NotFound),
            (None, 0) => Ok(self.trail),
            (None, 1) => {
                let name = self.rest.remove(0);
                self.trail.enter(&name)?;
                Ok(self.trail)
            }
        }
    }

    /// Absolute path, whether or not there is anything.
    pub(crate) fn path(&self, root: &Root) -> PathBuf {
        let mut path = self.trail.path(&root.path);
        path.extend(&self.rest);
        path
    }
}

/// Runs an operation again when what it looked at was changed under it.
pub(crate) fn steadily<T>(mut operation: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    for _ in 1..TRIES {
        match operation() {
            Err(Fault::Changed) => {}
            other => return other,
        }
    }
    operation()
}

impl Root {
    /// Goes where `steps` lead. With `follow`, a link at the end is followed too.
    pub(crate) fn locate(&self, steps: &Steps, follow: bool) -> Outcome<Spot> {
        if let Some(spot) = self.jump(steps, follow)? {
            return Ok(spot);
        }
        let spot = Walk::new(self, steps).run(follow)?;
        self.guard(&spot)?;
        Ok(spot)
    }

    /// The names of a path that the kernel may take whole.
    #[cfg(target_os = "linux")]
    pub(crate) fn plain_names(&self, steps: &Steps) -> Option<Vec<OsString>> {
        if !self.trusts_kernel() || steps.dir_only {
            return None;
        }
        let name = |step: &Step| match step {
            Step::Up => None,
            Step::Down(name) => Some(name.clone()),
        };
        steps.steps.iter().map(name).collect()
    }

    #[cfg(target_os = "linux")]
    fn jump(&self, steps: &Steps, follow: bool) -> Outcome<Option<Spot>> {
        let Some(mut names) = self.plain_names(steps) else { return Ok(None) };
        if names.len() < 2 {
            return Ok(None);
        }
        let Some(name) = names.pop() else { return Ok(None) };
        let parent: PathBuf = names.iter().collect();
        let Some(dir) = self.dir.open_beneath(&parent)? else { return Ok(None) };
        if follow && dir.read_link(&name).is_ok() {
            return Ok(None);
        }
        let trail = Trail::jump(Arc::clone(&self.dir), &names, Arc::new(dir));
        Ok(Some(Spot { trail, rest: vec![name], dir_only: false, barred: None }))
    }

    #[cfg(not(target_os = "linux"))]
    fn jump(&self, _steps: &Steps, _follow: bool) -> Outcome<Option<Spot>> {
        Ok(None)
    }

    /// Our own folders are outside, by name whether or not they are there, and by what they are.
    fn guard(&self, spot: &Spot) -> Outcome<()> {
        let names = spot.trail.names().chain(spot.rest.iter().map(OsString::as_os_str));
        if self.is_own(names) {
            return Err(Fault::Outside);
        }
        if let [name] = spot.rest.as_slice() {
            let own = self.own_identities();
            if !own.is_empty() && spot.trail.dir().stat(name).is_ok_and(|found| own.contains(&found.identity))
            {
                return Err(Fault::Outside);
            }
        }
        Ok(())
    }

    /// Path of an entry as text.
    pub(crate) fn shown(&self, spot: &Spot) -> String {
        text(spot.path(self).as_os_str())
    }
}

/// A walk under way.
struct Walk<'a> {
    root: &'a Root,
    trail: Trail,
    pending: VecDeque<Step>,
    dir_only: bool,
    links: usize,
    own: Vec<Identity>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Root, steps: &Steps) -> Walk<'a> {
        Walk {
            root,
            trail: Trail::new(Arc::clone(&root.dir)),
            pending: steps.steps.iter().cloned().collect(),
            dir_only: steps.dir_only,
            links: 0,
            own: root.own_identities(),
        }
    }

    fn run(mut self, follow: bool) -> Outcome<Spot> {
        while let Some(step) = self.pending.pop_front() {
            let name = match step {
                Step::Up if self.trail.at_root() => return Err(Fault::Outside),
                Step::Up => {
                    self.trail.leave()?;
                    continue;
                }
                Step::Down(name) => name,
            };
            let last = self.pending.is_empty();
            if last && !follow {
                return self.arrive(vec![name], None);
            }
            if last && !self.dir_only {
                match self.trail.dir().read_link(&name) {
                    Ok(target) => self.follow(&target)?,
                    Err(error) => match error.kind() {
                        ErrorKind::InvalidInput | ErrorKind::NotFound => {
                            return self.arrive(vec![name], None);
                        }
                        _ => return Err(error.into()),
                    },
                }
                continue;
            }
            match self.trail.enter(&name) {
                Ok(identity) if self.own.contains(&identity) => return Err(Fault::Outside),
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::NotADirectory => match self.trail.dir().read_link(&name) {
                        Ok(target) => self.follow(&target)?,
                        Err(_) => match self.trail.dir().stat(&name) {
                            Ok(found) if found.kind != Kind::Directory && found.kind != Kind::Symlink => {
                                return self.give_up(name, Barred::ByFile);
                            }
                            Ok(_) | Err(_) => return Err(Fault::Changed),
                        },
                    },
                    ErrorKind::NotFound => return self.give_up(name, Barred::ByMissing),
                    _ => return Err(error.into()),
                },
            }
        }
        self.arrive(Vec::new(), None)
    }

    fn arrive(self, rest: Vec<OsString>, barred: Option<Barred>) -> Outcome<Spot> {
        Ok(Spot { trail: self.trail, rest, dir_only: self.dir_only, barred })
    }

    /// Puts a link's target before what is left of the path.
    fn follow(&mut self, target: &OsStr) -> Outcome<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Fault::TooManyLinks);
        }
        if target.is_empty() {
            return Err(Fault::NotFound);
        }
        let steps = self.root.anchor.steps(target)?;
        if self.root.anchor.is_absolute(target) {
            self.trail.restart();
        }
        self.dir_only |= steps.dir_only && self.pending.is_empty();
        for step in steps.steps.into_iter().rev() {
            self.pending.push_front(step);
        }
        Ok(())
    }

    /// The rest of a path that ends early. Nothing is there to ask, so it is taken by its text: it may not climb out
    /// even so, lest an answer tell what is outside from what is missing.
    fn give_up(mut self, name: OsString, by: Barred) -> Outcome<Spot> {
        let mut rest = vec![name];
        let mut barred = (by == Barred::ByFile).then_some(by);
        for step in std::mem::take(&mut self.pending) {
            match step {
                Step::Down(name) => rest.push(name),
                Step::Up => {
                    barred = barred.or(Some(Barred::ByMissing));
                    if rest.pop().is_none() && self.trail.leave()?.is_none() {
                        return Err(Fault::Outside);
                    }
                }
            }
        }
        self.arrive(rest, barred)
    }
}

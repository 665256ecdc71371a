use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write};

use super::read::regular;
use super::temporary_name;
use crate::error::{Fault, JailError, Outcome};
use crate::request::Steps;
use crate::root::{Root, RootDir};
use crate::sys::{Dir, Meta, Replace};
use crate::trail::Trail;
use crate::types::{FileOp, Kind};
use crate::walk::{Barred, steadily};

impl RootDir {
    /// Puts `content` at `path`, whole or not at all: it is written beside it, made durable, and renamed into place. After a
    /// power cut the old content is there or the new one. That it is the new one is not waited for: the file system brings
    /// the name to the disk with its next changes (ext4: within 5 s), and a second wait for the disk would double the time
    /// of a small write.
    ///
    /// The mode and owner of a file replaced are kept (`OwnerNotKept` when that cannot be); a new one gets 0644 less the
    /// umask. Through a link that stays inside, the target is written. With `create_parents`, missing folders are made;
    /// they go again when the write fails.
    pub fn write(
        &self,
        path: &str,
        content: &[u8],
        create_parents: bool,
        limit: u64,
    ) -> Result<(), JailError> {
        let steps = self.begin(path)?;
        let attempted = content.len() as u64;
        if attempted > limit {
            return Err(Fault::TooLarge { limit, attempted, op: FileOp::Write }.at(path));
        }
        steadily(|| self.0.write(&steps, content, create_parents)).map_err(|fault| fault.at(path))
    }
}

impl Root {
    fn write(&self, steps: &Steps, content: &[u8], create_parents: bool) -> Outcome<()> {
        let mut spot = self.locate(steps, true)?;
        match spot.barred {
            Some(Barred::ByFile) => return Err(Fault::NotADirectory),
            Some(Barred::ByMissing) => return Err(Fault::NotFound),
            None => {}
        }
        let Some(name) = spot.rest.pop() else { return Err(Fault::NotAFile(Kind::Directory)) };
        if spot.dir_only {
            return Err(Fault::NotAFile(Kind::Directory));
        }
        if !spot.rest.is_empty() && !create_parents {
            return Err(Fault::NotFound);
        }
        let mut made = Parents { trail: spot.trail, made: 0 };
        let written = made.make(&spot.rest).and_then(|()| replace(&made.trail.dir(), &name, content));
        if written.is_err() {
            made.undo();
        }
        written
    }
}

/// Folders made on the way to a file.
struct Parents {
    trail: Trail,
    made: usize,
}

impl Parents {
    fn make(&mut self, names: &[OsString]) -> Outcome<()> {
        for name in names {
            match self.trail.dir().make_dir(name, false) {
                Ok(()) => {}
                // Somebody else made it: entered below if it is a directory, never if it is a link.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(Fault::Changed),
                Err(error) => return Err(error.into()),
            }
            self.trail.enter(name).map_err(|_| Fault::Changed)?;
            self.made += 1;
        }
        Ok(())
    }

    /// Takes back what was made, as far as it is still empty.
    fn undo(&mut self) {
        for _ in 0..self.made {
            match self.trail.leave() {
                Ok(Some(name)) if self.trail.dir().remove_dir(&name).is_ok() => {}
                _ => return,
            }
        }
    }
}

/// Replaces `name` in `dir`, or creates it.
fn replace(dir: &Dir, name: &OsString, content: &[u8]) -> Outcome<()> {
    let old = match dir.stat(name) {
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(old) = &old {
        regular(old.kind)?;
        dir.check_writable(name)?;
    }
    let temporary = temporary_name();
    let file = dir.create(&temporary, old.is_some())?;
    let placed = fill(dir, file, &temporary, old.as_ref(), content)
        .and_then(|()| dir.rename(&temporary, dir, name, Replace::File).map_err(Fault::from));
    if let Err(fault) = placed {
        // The error that counts is the first one; what is left behind is an unused file at worst.
        let _ = dir.remove_file(&temporary);
        return Err(match fault {
            // A directory has taken the name.
            Fault::Io(error) if error.kind() == ErrorKind::IsADirectory => Fault::Changed,
            other => other,
        });
    }
    Ok(())
}

fn fill(dir: &Dir, mut file: File, name: &OsString, old: Option<&Meta>, content: &[u8]) -> Outcome<()> {
    file.write_all(content)?;
    if let Some(old) = old {
        dir.adopt(&file, name, old).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => Fault::OwnerNotKept,
            _ => error.into(),
        })?;
    }
    file.sync_all()?;
    Ok(())
}

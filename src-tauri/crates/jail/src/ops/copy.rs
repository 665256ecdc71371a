use std::ffi::OsString;
use std::fs::{File, FileTimes};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, SystemTime};

use super::check;
use crate::error::{Fault, Outcome};
use crate::sys::{self, Dir, Meta};
use crate::types::Kind;
use crate::walk::Place;

/// Bytes copied between two looks at `stop`.
const CHUNK: usize = 256 * 1024;

/// A folder being copied: what is still to be done in it, and what its copy is to look like.
struct Level {
    names: Vec<OsString>,
    like: Meta,
}

/// Copies an entry with all that is below it, made durable: contents, links as links, modes, times, and owners as far as
/// we may. FIFOs, devices and sockets are refused.
pub(super) fn copy_tree(from: &Place, meta: &Meta, to: &Place, stop: &dyn Fn() -> bool) -> Outcome<()> {
    let (mut source, mut target) = (from.trail.clone(), to.trail.clone());
    if meta.kind != Kind::Directory {
        return copy_entry(&source.dir(), &from.name, &target.dir(), &to.name, stop);
    }
    let enter = |source: &mut crate::trail::Trail,
                 target: &mut crate::trail::Trail,
                 name: &OsString,
                 new: &OsString| {
        target.dir().make_dir(new, true)?;
        target.enter(new)?;
        source.enter(name).map_err(|_| Fault::Changed)?;
        let dir = source.dir();
        let mut names = Vec::new();
        dir.scan(&mut |entry| {
            names.push(entry.name.to_owned());
            true
        })?;
        Outcome::Ok(Level { names, like: dir.meta()? })
    };
    let mut levels = vec![enter(&mut source, &mut target, &from.name, &to.name)?];
    while let Some(level) = levels.last_mut() {
        check(stop)?;
        let Some(name) = level.names.pop() else {
            let dir = target.dir();
            dir.adopt_dir(&level.like)?;
            dir.sync()?;
            levels.pop();
            source.leave()?;
            target.leave()?;
            continue;
        };
        if source.dir().stat(&name)?.kind == Kind::Directory {
            let level = enter(&mut source, &mut target, &name, &name)?;
            levels.push(level);
        } else {
            copy_entry(&source.dir(), &name, &target.dir(), &name, stop)?;
        }
    }
    Ok(())
}

fn copy_entry(from: &Dir, name: &OsString, to: &Dir, new: &OsString, stop: &dyn Fn() -> bool) -> Outcome<()> {
    let meta = from.stat(name)?;
    match meta.kind {
        Kind::Symlink => Ok(to.make_link(new, &from.read_link(name)?, false)?),
        Kind::File => copy_file(from, name, to, new, stop),
        Kind::Directory => Err(Fault::Changed),
        Kind::Fifo | Kind::Socket | Kind::Device | Kind::Other => Err(Fault::NotAFile(meta.kind)),
    }
}

fn copy_file(from: &Dir, name: &OsString, to: &Dir, new: &OsString, stop: &dyn Fn() -> bool) -> Outcome<()> {
    let mut source: File = from.open_file(name)?;
    let meta = sys::file_meta(&source)?;
    if meta.kind != Kind::File {
        return Err(Fault::NotAFile(meta.kind));
    }
    let mut target = to.create(new, true)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        check(stop)?;
        match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => target.write_all(&chunk[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    // A file of somebody else becomes ours, without its set-id bits: nobody may give files away.
    match to.adopt(&target, new, &meta) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let ours = sys::file_meta(&target)?;
            to.adopt(&target, new, &Meta { owner: ours.owner, mode: meta.mode & 0o777, ..meta.clone() })?;
        }
        other => other?,
    }
    if meta.mtime >= 0.0 {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(meta.mtime);
        target.set_times(FileTimes::new().set_modified(modified))?;
    }
    Ok(target.sync_all()?)
}

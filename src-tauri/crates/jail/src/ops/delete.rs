use std::ffi::OsString;
use std::io::{Error, ErrorKind};

use super::check;
use crate::error::{Fault, JailError, Outcome};
use crate::request::Steps;
use crate::root::{Root, RootDir};
use crate::sys::Dir;
use crate::trail::Trail;
use crate::trash;
use crate::types::{DeleteOptions, Kind};
use crate::walk::{Place, steadily};

/// Names taken from a directory before they are removed: the directory changes under the reading otherwise.
const SWEEP: usize = 1024;

impl RootDir {
    /// Deletes. A link is removed, not its target. The root itself, however it is spelt, is outside, and so is a folder
    /// that holds one of our own. A folder on which another file system is mounted, or that has such inside, is not
    /// deleted for good.
    pub fn delete(
        &self,
        path: &str,
        options: &DeleteOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), JailError> {
        let steps = self.begin(path)?;
        match steadily(|| self.0.delete(&steps, options, stop)) {
            Err(Fault::NotFound) if options.missing_ok => Ok(()),
            outcome => outcome.map_err(|fault| fault.at(path)),
        }
    }
}

impl Root {
    fn delete(&self, steps: &Steps, options: &DeleteOptions, stop: &dyn Fn() -> bool) -> Outcome<()> {
        let spot = self.locate(steps, false)?;
        let dir_only = spot.dir_only;
        let place = spot.into_place().map_err(|fault| match fault {
            Fault::NotADirectory => Fault::NotFound,
            other => other,
        })?;
        let dir = place.dir();
        let meta = dir.stat(&place.name)?;
        if meta.identity == self.identity {
            return Err(Fault::Outside);
        }
        let is_dir = meta.kind == Kind::Directory;
        if dir_only && !is_dir && meta.kind != Kind::Symlink {
            return Err(Fault::NotADirectory);
        }
        if is_dir {
            self.spare_own(&place.names(), meta.identity)?;
            if !options.recursive && options.trash && !is_empty(&dir, &place.name)? {
                return Err(Fault::NotEmpty);
            }
        }
        check(stop)?;
        match (options.trash, is_dir, options.recursive) {
            (true, _, _) => trash::put(self, &place),
            (false, true, true) => remove_tree(place, stop),
            (false, true, false) => Ok(dir.remove_dir(&place.name)?),
            (false, false, _) => Ok(dir.remove_file(&place.name)?),
        }
    }
}

fn is_empty(dir: &Dir, name: &OsString) -> Outcome<bool> {
    let mut empty = true;
    dir.open_dir(name)?.scan(&mut |_| {
        empty = false;
        false
    })?;
    Ok(empty)
}

/// Removes an entry with all that is below it.
pub(crate) fn remove_tree(place: Place, stop: &dyn Fn() -> bool) -> Outcome<()> {
    let Place { mut trail, name } = place;
    let device = trail.dir().meta()?.identity.device;
    let Some(first) = enter_to_empty(&mut trail, &name, device, stop)? else { return Ok(()) };
    let mut levels = vec![first];
    while let Some(folders) = levels.last_mut() {
        check(stop)?;
        if let Some(name) = folders.pop() {
            levels.extend(enter_to_empty(&mut trail, &name, device, stop)?);
            continue;
        }
        levels.pop();
        let Some(name) = trail.leave()? else { return Err(Fault::Outside) };
        match trail.dir().remove_dir(&name) {
            Ok(()) => {}
            // More than one sweep's worth, or somebody adds to it.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                levels.extend(enter_to_empty(&mut trail, &name, device, stop)?);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Enters the directory `name`, removes the files in it, and gives the folders in it. Anything else than a directory is
/// removed: None.
fn enter_to_empty(
    trail: &mut Trail,
    name: &OsString,
    device: u64,
    stop: &dyn Fn() -> bool,
) -> Outcome<Option<Vec<OsString>>> {
    match trail.enter(name) {
        Ok(identity) if identity.device != device => {
            let mounted = Error::new(ErrorKind::CrossesDevices, "another file system is mounted in it");
            return Err(Fault::Io(mounted));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            trail.dir().remove_file(name)?;
            return Ok(None);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let dir = trail.dir();
    let mut names = Vec::new();
    dir.scan(&mut |entry| {
        names.push((entry.name.to_owned(), entry.kind));
        names.len() < SWEEP
    })?;
    let mut folders = Vec::new();
    for (index, (name, kind)) in names.into_iter().enumerate() {
        if index % 64 == 0 {
            check(stop)?;
        }
        let kind = match kind {
            Some(kind) => kind,
            None => dir.stat(&name)?.kind,
        };
        if kind == Kind::Directory {
            folders.push(name);
            continue;
        }
        match dir.remove_file(&name) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // A directory now: the next sweep sees to it.
            Err(_) if dir.stat(&name).is_ok_and(|meta| meta.kind == Kind::Directory) => folders.push(name),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(folders))
}

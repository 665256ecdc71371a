use crate::error::{Fault, JailError, Outcome};
use crate::request::Steps;
use crate::root::{Root, RootDir};
use crate::sys::Meta;
use crate::types::{Kind, Metadata, Stat, WorkingDir};
use crate::walk::{Spot, steadily};

impl RootDir {
    /// Describes what `path` leads to, touching nothing. Nothing there is no error. With `follow_symlinks` the
    /// description and the path are those of the last link's target, otherwise of the link.
    pub fn stat(&self, path: &str, follow_symlinks: bool) -> Result<Stat, JailError> {
        let steps = self.begin(path)?;
        steadily(|| self.0.stat(&steps, follow_symlinks)).map_err(|fault| fault.at(path))
    }

    /// [`RootDir::stat`] for a thread that must not wait: the answer, when the kernel has it in memory. None when a disk or a
    /// server would have to be asked, when there is a link in the way, nothing there, or a fault in the path: `stat` knows.
    /// Always None on systems other than Linux.
    pub fn stat_from_memory(&self, path: &str, follow_symlinks: bool) -> Option<Stat> {
        self.0.stat_from_memory(path, follow_symlinks)
    }

    /// The directory a command starts in: the root itself without a path. `NotFound` or `NotADirectory` when it is not
    /// there.
    pub fn working_dir(&self, path: Option<&str>) -> Result<WorkingDir, JailError> {
        let path = path.unwrap_or(".");
        let steps = self.begin(path)?;
        steadily(|| self.0.working_dir(&steps)).map_err(|fault| fault.at(path))
    }
}

impl Root {
    pub(crate) fn stat(&self, steps: &Steps, follow: bool) -> Outcome<Stat> {
        if let Some(stat) = self.stat_at_once(steps, follow)? {
            return Ok(stat);
        }
        let spot = self.locate(steps, follow)?;
        let found = self.describe(&spot, follow)?;
        let path = self.shown(&spot);
        let exists = found.is_some();
        let name = spot.rest.last().cloned();
        Ok(Stat { exists, path, metadata: found.map(|meta| metadata(&meta, name.as_deref())) })
    }

    fn describe(&self, spot: &Spot, follow: bool) -> Outcome<Option<Meta>> {
        if spot.barred.is_some() || spot.rest.len() > 1 {
            return Ok(None);
        }
        let dir = spot.trail.dir();
        let found = match spot.rest.as_slice() {
            [] => dir.meta(),
            [name, ..] => dir.stat(name),
        };
        match found.map_err(Fault::from) {
            Ok(meta) if follow && meta.kind == Kind::Symlink => Err(Fault::Changed),
            Ok(meta) if spot.dir_only && meta.kind != Kind::Directory && meta.kind != Kind::Symlink => {
                Ok(None)
            }
            Ok(meta) => Ok(Some(meta)),
            Err(Fault::NotFound) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The common case: plain names, no link in the way.
    #[cfg(target_os = "linux")]
    fn stat_at_once(&self, steps: &Steps, follow: bool) -> Outcome<Option<Stat>> {
        let Some(names) = self.plain_names(steps).filter(|names| !names.is_empty()) else { return Ok(None) };
        let below: std::path::PathBuf = names.iter().collect();
        let found = match names.as_slice() {
            [name] => self.dir.stat(name).ok(),
            _ => self.dir.stat_beneath(&below)?,
        };
        Ok(found.filter(|meta| !follow || meta.kind != Kind::Symlink).map(|meta| self.plain(&below, &meta)))
    }

    /// What is there by plain names, no link in the way.
    #[cfg(target_os = "linux")]
    fn plain(&self, below: &std::path::Path, meta: &Meta) -> Stat {
        let path = crate::request::text(self.path.join(below).as_os_str());
        Stat { exists: true, path, metadata: Some(metadata(meta, below.file_name())) }
    }

    #[cfg(target_os = "linux")]
    fn stat_from_memory(&self, path: &str, follow: bool) -> Option<Stat> {
        if !self.local {
            return None;
        }
        let steps = self.anchor.parse(path).ok()?;
        let names = self.plain_names(&steps).filter(|names| !names.is_empty())?;
        if crate::sys::identity_from_memory(&self.path)? != self.identity {
            return None;
        }
        let below: std::path::PathBuf = names.iter().collect();
        let meta = self.dir.stat_from_memory(&below)?;
        (!follow || meta.kind != Kind::Symlink).then(|| self.plain(&below, &meta))
    }

    #[cfg(not(target_os = "linux"))]
    fn stat_from_memory(&self, _path: &str, _follow: bool) -> Option<Stat> {
        None
    }

    #[cfg(not(target_os = "linux"))]
    fn stat_at_once(&self, _steps: &Steps, _follow: bool) -> Outcome<Option<Stat>> {
        Ok(None)
    }

    fn working_dir(&self, steps: &Steps) -> Outcome<WorkingDir> {
        let trail = self.locate(steps, true)?.into_dir()?;
        let path = trail.path(&self.path);
        Ok(trail.dir().working_dir(path)?)
    }
}

fn metadata(meta: &Meta, name: Option<&std::ffi::OsStr>) -> Metadata {
    let mime_type = match (meta.kind, name) {
        (Kind::File, Some(name)) => mime_guess::from_path(name).first_raw().map(str::to_owned),
        _ => None,
    };
    Metadata {
        kind: meta.kind,
        size: meta.size,
        mtime: meta.mtime,
        ctime: meta.ctime,
        mode: meta.mode,
        owner_uid: meta.owner.map(|(user, _)| user),
        owner_gid: meta.owner.map(|(_, group)| group),
        mime_type,
    }
}

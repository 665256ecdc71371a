//! The root: which folders may be one, and the handle that every operation starts from.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::case;
use crate::error::{Fault, JailError, Outcome, RootRefusal};
use crate::folders::{self, Claim};
use crate::request::{Anchor, Steps, names_of};
use crate::rules::Flavor;
use crate::sys::{self, Dir};
use crate::types::Identity;

/// What a root must know of the world around it.
#[derive(Clone, Debug, Default)]
pub struct RootOptions {
    /// Our own configuration, state and runtime folders: outside every root, also when the root contains them. They
    /// need not exist yet.
    pub forbidden: Vec<PathBuf>,
    /// The user's home, for `~` and for what may be a root.
    pub home: Option<PathBuf>,
    /// Windows' rules for names on every system, for folders that are shared with Windows.
    pub portable_names: bool,
}

/// How a path is taken from directory to directory.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walker {
    /// One openat2 where nothing but plain names is in the way, else the portable walk.
    Kernel,
    /// Component by component: macOS, Windows, and Linux kernels or sandboxes without openat2.
    Portable,
}

/// A directory that was opened once, and below which every operation stays. Cheap to clone: clones share the handle.
#[derive(Clone, Debug)]
pub struct RootDir(pub(crate) Arc<Root>);

#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) dir: Arc<Dir>,
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) anchor: Anchor,
    /// Where the trash is.
    #[cfg(target_os = "linux")]
    pub(crate) home: Option<PathBuf>,
    whole_home: bool,
    own: Vec<OwnFolder>,
    #[cfg(target_os = "linux")]
    walker: Walker,
    /// On a disk of this machine, not a server's.
    #[cfg(target_os = "linux")]
    pub(crate) local: bool,
}

/// One of our own folders, below the root.
#[derive(Debug)]
struct OwnFolder {
    path: PathBuf,
    /// Names from the root down to it.
    chain: Vec<OsString>,
}

/// Whether `path` may be a root; its canonical form. It is not kept open.
pub fn check_root(path: &Path, options: &RootOptions) -> Result<PathBuf, JailError> {
    Ok(open_checked(path, options)?.1)
}

/// Where `path` really is, written as [`check_root`] and [`RootDir::path`] write it: on Windows without the prefix that
/// the system's own canonical form has.
///
/// # Errors
/// It is gone, or may not be looked up.
pub fn canonical(path: &Path) -> std::io::Result<PathBuf> {
    std::fs::canonicalize(path).map(sys::display_path)
}

fn refused<T>(why: RootRefusal) -> Result<T, JailError> {
    Err(JailError::RootRefused(why))
}

fn open_checked(path: &Path, options: &RootOptions) -> Result<(Dir, PathBuf), JailError> {
    let given = path.to_string_lossy();
    let failed = |error: std::io::Error| Fault::from(error).at(&given);
    if !path.is_absolute() {
        return refused(RootRefusal::NotAbsolute);
    }
    // Rebuilt, for `link/` would follow the link.
    let plain: PathBuf = path.components().collect();
    let found = std::fs::symlink_metadata(&plain).map_err(failed)?;
    if found.is_symlink() {
        return refused(RootRefusal::Link);
    }
    if !found.is_dir() {
        return refused(RootRefusal::NotADirectory);
    }
    let canonical = canonical(&plain).map_err(failed)?;
    let Some(text) = canonical.to_str().filter(|text| !text.contains(char::is_control)) else {
        return refused(RootRefusal::UnsendableName);
    };
    let dir = match Dir::open_root(&canonical) {
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return refused(RootRefusal::Link),
        other => other.map_err(failed)?,
    };
    check_place(text, &canonical, options)?;
    let identity = dir.meta().map_err(failed)?.identity;
    if is_own(&canonical, identity, options) {
        return refused(RootRefusal::OwnFolder);
    }
    Ok((dir, canonical))
}

/// Refuses what belongs to the system, and what homes are in.
fn check_place(text: &str, canonical: &Path, options: &RootOptions) -> Result<(), JailError> {
    let home = options.home.as_deref().map(canonical_or_same);
    if let Some(home) = &home {
        if home.starts_with(canonical) && home != canonical {
            return refused(match claim(text) {
                Some(Claim::WholeFileSystem) => RootRefusal::FileSystemRoot,
                Some(Claim::HomeParent | Claim::System) | None => RootRefusal::HomeParent,
            });
        }
        // A service's home may lie in a folder of the system.
        if canonical.starts_with(home) && home.parent().is_some() {
            return Ok(());
        }
    }
    match claim(text) {
        None => Ok(()),
        Some(Claim::WholeFileSystem) => refused(RootRefusal::FileSystemRoot),
        Some(Claim::HomeParent) => refused(RootRefusal::HomeParent),
        Some(Claim::System) => refused(RootRefusal::SystemFolder),
    }
}

#[cfg(not(windows))]
fn claim(path: &str) -> Option<Claim> {
    folders::unix_claim(path)
}

#[cfg(windows)]
fn claim(path: &str) -> Option<Claim> {
    let drive = std::env::var("SystemDrive").ok().and_then(|drive| drive.chars().next()).unwrap_or('C');
    folders::windows_claim(path, drive)
}

/// The canonical path of what exists of `path`, and the rest as it is.
fn canonical_or_same(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = canonical(ancestor)
            && let Ok(rest) = path.strip_prefix(ancestor)
        {
            return real.join(rest).components().collect();
        }
    }
    path.to_owned()
}

/// Whether the folder is, or lies in, one of our own.
fn is_own(canonical: &Path, identity: Identity, options: &RootOptions) -> bool {
    options.forbidden.iter().map(|path| canonical_or_same(path)).any(|own| {
        canonical.starts_with(&own)
            || sys::identity_at(&own).is_ok_and(|own| {
                own == identity
                    || canonical
                        .ancestors()
                        .any(|above| sys::identity_at(above).is_ok_and(|above| above == own))
            })
    })
}

impl RootDir {
    /// Opens a root. Refuses what [`check_root`] refuses.
    pub fn open(path: &Path, options: &RootOptions) -> Result<RootDir, JailError> {
        RootDir::open_with(path, options, Walker::Kernel)
    }

    /// As `open`, with the way of walking chosen: tests run against each.
    #[doc(hidden)]
    pub fn open_with(path: &Path, options: &RootOptions, walker: Walker) -> Result<RootDir, JailError> {
        let (dir, canonical) = open_checked(path, options)?;
        let given = path.to_string_lossy();
        let identity = dir.meta().map_err(|error| Fault::from(error).at(&given))?.identity;
        let folds = case::folds(&dir);
        let mut roots = vec![names_of(&canonical)];
        // The user may write a path with a link above the root (`/tmp` on macOS) and the agent use the same.
        if !path.components().any(|component| component == std::path::Component::ParentDir) {
            roots.push(names_of(path));
        }
        let home = options.home.as_deref().map(canonical_or_same);
        let anchor = Anchor {
            roots,
            home: home.as_deref().map(names_of),
            folds,
            flavor: Flavor::native(options.portable_names),
        };
        let own = options.forbidden.iter().filter_map(|path| OwnFolder::below(path, identity)).collect();
        let whole_home =
            home.as_deref().is_some_and(|home| sys::identity_at(home).is_ok_and(|home| home == identity));
        #[cfg(not(target_os = "linux"))]
        let (Walker::Kernel | Walker::Portable) = walker;
        Ok(RootDir(Arc::new(Root {
            #[cfg(target_os = "linux")]
            local: dir.is_local(),
            dir: Arc::new(dir),
            path: canonical,
            identity,
            anchor,
            #[cfg(target_os = "linux")]
            home,
            whole_home,
            own,
            #[cfg(target_os = "linux")]
            walker,
        })))
    }

    /// Absolute and canonical, as it was when the root was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Which directory this is.
    pub fn identity(&self) -> Identity {
        self.0.identity
    }

    /// Whether this is the user's whole home, which deserves a warning.
    pub fn is_whole_home(&self) -> bool {
        self.0.whole_home
    }

    /// Whether the path still leads to this very directory. Every operation asks this first: a root that was deleted,
    /// moved away, replaced or unmounted is `RootGone`, and nothing happens in it any more.
    pub fn verify(&self) -> Result<(), JailError> {
        match sys::identity_at(&self.0.path) {
            Ok(identity) if identity == self.0.identity => Ok(()),
            Ok(_) | Err(_) => Err(JailError::RootGone),
        }
    }

    /// Takes a path of a request apart, for a root that is still there.
    pub(crate) fn begin(&self, path: &str) -> Result<Steps, JailError> {
        let steps = self.0.anchor.parse(path)?;
        self.verify()?;
        Ok(steps)
    }
}

impl OwnFolder {
    fn below(path: &Path, root: Identity) -> Option<OwnFolder> {
        let path = canonical_or_same(path);
        let top = path.ancestors().find(|above| sys::identity_at(above).is_ok_and(|above| above == root))?;
        let chain = names_of(path.strip_prefix(top).ok()?);
        Some(OwnFolder { chain, path })
    }
}

impl Root {
    /// Whether a path without links and `..` may be handed to the kernel whole: not when folders on the way must be
    /// looked at.
    #[cfg(target_os = "linux")]
    pub(crate) fn trusts_kernel(&self) -> bool {
        self.walker == Walker::Kernel && self.own.is_empty()
    }

    /// Our own folders as they are now.
    pub(crate) fn own_identities(&self) -> Vec<Identity> {
        self.own.iter().filter_map(|own| sys::identity_at(&own.path).ok()).collect()
    }

    /// Whether names from the root down lead to or into one of our own folders.
    pub(crate) fn is_own<'a>(&self, names: impl Iterator<Item = &'a OsStr> + Clone) -> bool {
        self.own.iter().any(|own| self.anchor.begins(names.clone(), &own.chain))
    }

    /// Refuses a folder that one of our own is in: it may not be moved, replaced or deleted as a whole.
    pub(crate) fn spare_own(&self, names: &[OsString], identity: Identity) -> Outcome<()> {
        let holds = |own: &OwnFolder| {
            self.anchor.begins(own.chain.iter().map(OsString::as_os_str), names)
                || own
                    .path
                    .ancestors()
                    .take(own.chain.len())
                    .any(|above| sys::identity_at(above).is_ok_and(|above| above == identity))
        };
        if self.own.iter().any(holds) { Err(Fault::Outside) } else { Ok(()) }
    }
}

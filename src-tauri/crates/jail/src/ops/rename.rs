use std::io::ErrorKind;

use super::copy::copy_tree;
use super::{check, remove_tree, temporary_name};
use crate::error::{Fault, JailError};
use crate::request::Steps;
use crate::root::{Root, RootDir};
use crate::sys::{Meta, Replace};
use crate::types::Kind;
use crate::walk::Place;

/// Which of the two paths is at fault.
enum Side {
    Src(Fault),
    Dst(Fault),
}

type Moved = Result<(), Side>;

/// An end of the move that is there.
struct End {
    place: Place,
    meta: Meta,
}

impl RootDir {
    /// Moves a file, link or folder. Links at either end are moved or replaced themselves. With `overwrite`, a file takes
    /// the place of a file and a folder that of a folder: atomically where the system can, else the old one is kept
    /// beside it until the new one is in place. A file onto itself stays as it is; a folder never goes into itself, nor
    /// anything onto a folder that contains it (`IntoItself`). To another file system it is copied, then deleted.
    pub fn rename(
        &self,
        src: &str,
        dst: &str,
        overwrite: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), JailError> {
        let from = self.begin(src)?;
        let to = self.begin(dst)?;
        let mut moved = self.0.rename(&from, &to, overwrite, stop);
        for _ in 0..16 {
            match moved {
                Err(Side::Src(Fault::Changed) | Side::Dst(Fault::Changed)) => {
                    moved = self.0.rename(&from, &to, overwrite, stop);
                }
                Ok(()) | Err(_) => break,
            }
        }
        moved.map_err(|side| match side {
            Side::Src(Fault::IntoItself) | Side::Dst(Fault::IntoItself) => {
                JailError::IntoItself { src: src.to_owned(), dst: dst.to_owned() }
            }
            Side::Src(fault) => fault.at(src),
            Side::Dst(fault) => fault.at(dst),
        })
    }
}

impl Root {
    fn rename(&self, from: &Steps, to: &Steps, overwrite: bool, stop: &dyn Fn() -> bool) -> Moved {
        let src = self.source(from).map_err(Side::Src)?;
        let spot = self.locate(to, false).map_err(Side::Dst)?;
        let dir_only = spot.dir_only;
        let dst = spot.into_place().map_err(Side::Dst)?;
        let old = match dst.dir().stat(&dst.name) {
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Side::Dst(error.into())),
        };
        if dir_only && src.meta.kind != Kind::Directory {
            return Err(Side::Dst(Fault::NotADirectory));
        }
        if let Some(old) = &old {
            if old.identity == self.identity {
                return Err(Side::Dst(Fault::Outside));
            }
            if old.kind == Kind::Directory {
                self.spare_own(&dst.names(), old.identity).map_err(Side::Dst)?;
            }
            if old.identity == src.meta.identity {
                return self.onto_itself(&src, &dst, overwrite);
            }
            if !overwrite {
                return Err(Side::Dst(Fault::Exists));
            }
            if src.meta.kind == Kind::Symlink && self.leads_to(from, to) {
                return Err(Side::Dst(Fault::IntoItself));
            }
        }
        let (src_names, dst_names) = (src.place.names(), dst.names());
        let begins = |path: &[std::ffi::OsString], start: &[std::ffi::OsString]| {
            self.anchor.begins(path.iter().map(std::ffi::OsString::as_os_str), start)
        };
        if src.meta.kind == Kind::Directory && begins(&dst_names, &src_names)
            || begins(&src_names, &dst_names)
        {
            return Err(Side::Dst(Fault::IntoItself));
        }
        check(stop).map_err(Side::Src)?;
        match place(&src, &dst, old.as_ref(), stop) {
            Err(Side::Src(Fault::Io(error))) if error.kind() == ErrorKind::CrossesDevices => {
                across(src, &dst, old.as_ref(), stop)
            }
            other => other,
        }
    }

    /// Whether the link's target is the other one: in its place the link would lead to itself, and the content be lost.
    fn leads_to(&self, link: &Steps, other: &Steps) -> bool {
        match (self.stat(link, true), self.stat(other, false)) {
            (Ok(target), Ok(other)) => target.exists && target.path == other.path,
            (Ok(_) | Err(_), _) => false,
        }
    }

    fn source(&self, steps: &Steps) -> Result<End, Fault> {
        let spot = self.locate(steps, false)?;
        let dir_only = spot.dir_only;
        let place = spot.into_place().map_err(|fault| match fault {
            Fault::NotADirectory => Fault::NotFound,
            other => other,
        })?;
        let meta = place.dir().stat(&place.name)?;
        if meta.identity == self.identity {
            return Err(Fault::Outside);
        }
        if meta.kind == Kind::Directory {
            self.spare_own(&place.names(), meta.identity)?;
        } else if dir_only && meta.kind != Kind::Symlink {
            return Err(Fault::NotADirectory);
        }
        Ok(End { place, meta })
    }

    /// Both ends are one file: under one name, under one that differs in case only, or under two of its names.
    fn onto_itself(&self, src: &End, dst: &Place, overwrite: bool) -> Moved {
        let (from, to) = (src.place.dir(), dst.dir());
        let same_dir = match (from.meta(), to.meta()) {
            (Ok(from), Ok(to)) => from.identity == to.identity,
            _ => return Err(Side::Src(Fault::Changed)),
        };
        if same_dir && src.place.name != dst.name && self.anchor.same_name(&src.place.name, &dst.name) {
            return from
                .rename(&src.place.name, &to, &dst.name, Replace::File)
                .map_err(|error| Side::Src(error.into()));
        }
        if !overwrite {
            return Err(Side::Dst(Fault::Exists));
        }
        let one_name = same_dir && src.place.name == dst.name;
        if one_name || src.meta.links < 2 || src.meta.kind == Kind::Directory {
            return Ok(());
        }
        // Two hard links: the destination has the contents already.
        from.remove_file(&src.place.name).map_err(|error| Side::Src(error.into()))
    }
}

/// Puts `src` at `dst`, on one file system.
fn place(src: &End, dst: &Place, old: Option<&Meta>, stop: &dyn Fn() -> bool) -> Moved {
    let (from, to) = (src.place.dir(), dst.dir());
    let is_dir = src.meta.kind == Kind::Directory;
    let how = match old.map(|old| old.kind == Kind::Directory) {
        None => Replace::Never,
        Some(false) if !is_dir => Replace::File,
        Some(true) if is_dir => return replace_dir(src, dst, stop),
        // A folder does not make way for a file, nor a file for a folder.
        Some(_) => return Err(Side::Dst(Fault::Exists)),
    };
    from.rename(&src.place.name, &to, &dst.name, how).map_err(|error| blame(error.into()))
}

/// Which side an error of a rename is about.
fn blame(fault: Fault) -> Side {
    match fault {
        Fault::Exists | Fault::NotEmpty => Side::Dst(Fault::Exists),
        // The kernel's word for a folder into itself, when it was moved there meanwhile.
        Fault::Io(error) if error.kind() == ErrorKind::InvalidInput => Side::Dst(Fault::IntoItself),
        // Kinds changed under us.
        Fault::NotADirectory => Side::Dst(Fault::Changed),
        Fault::Io(error) if error.kind() == ErrorKind::IsADirectory => Side::Dst(Fault::Changed),
        other => Side::Src(other),
    }
}

/// Puts a folder in the place of another one. At every moment one of them is at the destination, or the old one beside
/// it.
fn replace_dir(src: &End, dst: &Place, stop: &dyn Fn() -> bool) -> Moved {
    let (from, to) = (src.place.dir(), dst.dir());
    let aside = temporary_name();
    let old = match from.rename(&src.place.name, &to, &dst.name, Replace::Exchange) {
        Ok(()) => Place { trail: src.place.trail.clone(), name: src.place.name.clone() },
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            to.rename(&dst.name, &to, &aside, Replace::Never).map_err(|error| Side::Dst(error.into()))?;
            if let Err(error) = from.rename(&src.place.name, &to, &dst.name, Replace::Never) {
                // Back again. Should even that fail, it is still there under the other name.
                let _ = to.rename(&aside, &to, &dst.name, Replace::Never);
                return Err(blame(error.into()));
            }
            Place { trail: dst.trail.clone(), name: aside }
        }
        Err(error) => return Err(blame(error.into())),
    };
    remove_tree(old, stop).map_err(Side::Dst)
}

/// To another file system: a whole copy beside the destination, put in place, and only then is the source deleted.
fn across(src: End, dst: &Place, old: Option<&Meta>, stop: &dyn Fn() -> bool) -> Moved {
    let beside = Place { trail: dst.trail.clone(), name: temporary_name() };
    let discard = |beside: Place| {
        // What is left is an unused copy at worst; the error that counts is another.
        let _ = remove_tree(beside, &|| false);
    };
    if let Err(fault) = copy_tree(&src.place, &src.meta, &beside, stop) {
        discard(beside);
        return Err(Side::Src(fault));
    }
    let copy = End { meta: src.meta, place: beside };
    if let Err(side) = place(&copy, dst, old, stop) {
        discard(copy.place);
        return Err(side);
    }
    dst.dir().sync().map_err(|error| Side::Dst(error.into()))?;
    remove_tree(src.place, stop).map_err(Side::Src)
}

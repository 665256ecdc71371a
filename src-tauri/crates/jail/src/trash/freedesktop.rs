//! The freedesktop.org trash (specification 1.0), by handle: the entry is renamed from its directory into the trash, so
//! no path is followed. That is one rename, so only a trash on the same mount will do: the one in the home, else the
//! volume's own, which is made when the volume has none.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Fault, Outcome};
use crate::root::Root;
use crate::sys::{Dir, Replace};
use crate::types::Kind;
use crate::walk::Place;

/// Other entries of the same name that may lie in the trash already before we give up.
const NUMBERS: u32 = 10_000;

/// Moves an entry into the trash. `NoTrash`, and nothing done, where there is none that can take it.
pub(crate) fn put(root: &Root, place: &Place) -> Outcome<()> {
    let path = place.trail.path(&root.path).join(&place.name);
    if let Some(home) = home_trash(root)
        && let Ok(trash) = open_home(&home)
        && trash.meta()?.identity.device == place.dir().meta()?.identity.device
        && move_into(&trash, place, &path)?
    {
        return Ok(());
    }
    let volume = volume(place, &path)?;
    let trash = volume_trash(&volume.top).map_err(|why| Fault::NoTrash(why.to_owned()))?;
    match move_into(&trash, place, &volume.below) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::NoTrash("it is on a volume of its own, which has no trash".to_owned())),
        Err(fault) => Err(fault),
    }
}

fn home_trash(root: &Root) -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(data.or_else(|| Some(root.home.as_ref()?.join(".local/share")))?.join("Trash"))
}

fn open_home(path: &Path) -> std::io::Result<Dir> {
    match Dir::open_root(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            use std::os::unix::fs::DirBuilderExt;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            Dir::open_root(path)
        }
        other => other,
    }
}

/// Where the file system that an entry is on is mounted.
struct Volume {
    top: Dir,
    /// Path of the entry from there.
    below: PathBuf,
}

fn volume(place: &Place, path: &Path) -> Outcome<Volume> {
    let mut top = place.dir().try_clone()?;
    let mut depth = 1;
    while let Some(above) = top.parent_unless_mount()? {
        top = above;
        depth += 1;
    }
    let names: Vec<&OsStr> = path.iter().collect();
    let below = names[names.len().saturating_sub(depth)..].iter().collect();
    Ok(Volume { top, below })
}

/// `.Trash/$uid` where an administrator made a good `.Trash`, else `.Trash-$uid`.
fn volume_trash(top: &Dir) -> Result<Dir, &'static str> {
    const STICKY: u32 = 0o1000;
    let user = rustix::process::geteuid().as_raw();
    let own = OsString::from(user.to_string());
    let shared = OsStr::new(".Trash");
    if top.stat(shared).is_ok_and(|meta| meta.kind == Kind::Directory && meta.mode & STICKY != 0)
        && let Ok(shared) = top.open_dir(shared)
        && let Ok(trash) = open_private(&shared, &own, user)
    {
        return Ok(trash);
    }
    open_private(top, &OsString::from(format!(".Trash-{user}")), user)
        .map_err(|_| "its volume has no trash and none can be made there")
}

/// Opens a directory of ours, making it if need be.
fn open_private(parent: &Dir, name: &OsStr, user: u32) -> std::io::Result<Dir> {
    match parent.make_dir(name, true) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let dir = parent.open_dir(name)?;
    let ours = dir.meta()?.owner.is_some_and(|(owner, _)| owner == user);
    if ours { Ok(dir) } else { Err(ErrorKind::PermissionDenied.into()) }
}

/// Files the entry under a free name. False when the trash turns out to be on another mount.
fn move_into(trash: &Dir, place: &Place, original: &Path) -> Outcome<bool> {
    let part = |name: &str| -> std::io::Result<Dir> {
        match trash.make_dir(OsStr::new(name), true) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => trash.open_dir(OsStr::new(name)),
        }
    };
    let unusable =
        |error: std::io::Error| Fault::NoTrash(format!("its trash cannot be used ({})", error.kind()));
    let (info, files) = (part("info").map_err(unusable)?, part("files").map_err(unusable)?);
    for number in 1..NUMBERS {
        let name = numbered(&place.name, number);
        let record = record_name(&name);
        let mut file = match info.create(&record, true) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(unusable(error)),
        };
        // The record first: an entry without one could not be put back.
        let moved = file
            .write_all(record_text(original).as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| place.dir().rename(&place.name, &files, &name, Replace::Never));
        let Err(error) = moved else { return Ok(true) };
        let _ = info.remove_file(&record);
        match error.kind() {
            ErrorKind::AlreadyExists => {}
            ErrorKind::CrossesDevices => return Ok(false),
            ErrorKind::InvalidInput => return Err(Fault::NoTrash("the trash itself is in it".to_owned())),
            _ => return Err(error.into()),
        }
    }
    Err(Fault::NoTrash("too many of that name are in the trash; empty it".to_owned()))
}

/// `name`, `name.2`, …: short enough for a record's name too.
fn numbered(name: &OsStr, number: u32) -> OsString {
    /// 255 less `.trashinfo` and a number.
    const LONGEST: usize = 255 - 10 - 6;
    let bytes = name.as_bytes();
    let mut numbered = OsStr::from_bytes(&bytes[..bytes.len().min(LONGEST)]).to_owned();
    if number > 1 {
        numbered.push(format!(".{number}"));
    }
    numbered
}

fn record_name(name: &OsStr) -> OsString {
    let mut record = name.to_owned();
    record.push(".trashinfo");
    record
}

fn record_text(original: &Path) -> String {
    let mut path = String::new();
    for byte in original.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                path.push(char::from(*byte));
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string();
    format!("[Trash Info]\nPath={path}\nDeletionDate={now}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_the_original_escaped() {
        let text = record_text(Path::new("/home/u/a b/ü%"));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("[Trash Info]"));
        assert_eq!(lines.next(), Some("Path=/home/u/a%20b/%C3%BC%25"));
        let date = lines.next().unwrap().strip_prefix("DeletionDate=").unwrap();
        assert!(date.parse::<jiff::civil::DateTime>().is_ok(), "{date}");
    }

    #[test]
    fn a_long_name_fits_with_its_number_and_record() {
        let name = numbered(OsStr::new(&"x".repeat(255)), 9999);
        assert!(record_name(&name).len() <= 255);
    }
}

//! What is mounted inside a folder: a path jail cannot see that a bind mount leads elsewhere.

use std::io;
use std::path::{Path, PathBuf};

/// The mount points strictly below `folder`, which is canonical.
#[cfg(target_os = "linux")]
pub(super) fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(inside(folder, mount_points(&table)))
}

/// The fifth field of each line of proc_pid_mountinfo(5).
#[cfg(target_os = "linux")]
fn mount_points(table: &[u8]) -> impl Iterator<Item = PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let fields =
        table.split(|&byte| byte == b'\n').filter_map(|line| line.split(|&byte| byte == b' ').nth(4));
    fields.map(|field| PathBuf::from(std::ffi::OsString::from_vec(unescape(field))))
}

/// Space, tab, newline and backslash are written as `\` and three octal digits.
#[cfg(target_os = "linux")]
fn unescape(field: &[u8]) -> Vec<u8> {
    let octal = |digits: &[u8]| {
        digits.iter().try_fold(0u32, |value, &digit| {
            matches!(digit, b'0'..=b'7').then(|| value * 8 + u32::from(digit - b'0'))
        })
    };
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'\\').then(|| after.get(..3).and_then(octal)).flatten();
        match escaped.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                plain.push(value);
                rest = &after[3..];
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

/// The mount points strictly below `folder`, which is canonical.
#[cfg(target_os = "macos")]
#[expect(unsafe_code, reason = "the standard library cannot list mounts")]
pub(super) fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: with no buffer it only counts.
    let count = unsafe { libc::getfsstat(std::ptr::null_mut(), 0, libc::MNT_NOWAIT) };
    // Some more, for what is mounted meanwhile.
    let room = usize::try_from(count).map_err(|_| io::Error::last_os_error())? + 16;
    let mut found: Vec<libc::statfs> = Vec::with_capacity(room);
    let bytes = libc::c_int::try_from(room * size_of::<libc::statfs>()).map_err(io::Error::other)?;
    // SAFETY: the buffer has room for that many bytes.
    let filled = unsafe { libc::getfsstat(found.as_mut_ptr(), bytes, libc::MNT_NOWAIT) };
    let filled = usize::try_from(filled).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled that many, and never more than there was room for.
    unsafe { found.set_len(filled.min(room)) };
    let points = found.iter().map(|mount| {
        // SAFETY: the kernel ends the name with a zero within the array.
        let name = unsafe { CStr::from_ptr(mount.f_mntonname.as_ptr()) };
        PathBuf::from(OsStr::from_bytes(name.to_bytes()))
    });
    Ok(inside(folder, points))
}

/// On Windows a volume mounted in a folder is a reparse point, which the jail itself refuses: there is nothing to warn of.
#[cfg(windows)]
pub(super) fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(inside(folder, std::iter::empty()))
}

fn inside(folder: &Path, points: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<_> = points.filter(|point| point != folder && point.starts_with(folder)).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_mounted_below_counts_and_escapes_are_read() {
        let table = b"22 1 0:1 / / rw - ext4 /dev/a rw\n\
            23 22 0:2 / /home/ann rw - ext4 /dev/b rw\n\
            24 23 0:3 /secret /home/ann/a\\040b\\134c rw - ext4 /dev/b rw\n\
            25 22 0:4 / /home/annette/x rw - tmpfs t rw\n";
        let found = inside(Path::new("/home/ann"), mount_points(table));
        assert_eq!(found, [PathBuf::from("/home/ann/a b\\c")]);
        assert_eq!(unescape(b"\\04"), b"\\04");
        assert_eq!(unescape(b"\\777"), b"\\777");
    }

    #[test]
    fn the_systems_own_table_can_be_read() {
        assert!(below(Path::new("/")).unwrap().contains(&PathBuf::from("/proc")));
    }
}

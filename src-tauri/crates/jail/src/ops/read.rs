use std::io::{Read, Seek, SeekFrom};

use crate::error::{Fault, JailError, Outcome};
use crate::request::Steps;
use crate::root::{Root, RootDir};
use crate::sys;
use crate::types::{FileContents, FileOp, Kind, ReadRange};
use crate::walk::steadily;

impl RootDir {
    /// Reads a regular file, or a range of one. `TooLarge` when that is more than `limit` bytes; the size of the file
    /// does not matter when the range fits. Directories, FIFOs, devices and sockets are `NotAFile` and not opened.
    pub fn read(&self, path: &str, range: ReadRange, limit: u64) -> Result<FileContents, JailError> {
        let steps = self.begin(path)?;
        steadily(|| self.0.read(&steps, range, limit)).map_err(|fault| fault.at(path))
    }
}

impl Root {
    fn read(&self, steps: &Steps, range: ReadRange, limit: u64) -> Outcome<FileContents> {
        let spot = self.locate(steps, true)?;
        if spot.barred.is_some() || spot.rest.len() > 1 {
            return Err(Fault::NotFound);
        }
        let [name] = spot.rest.as_slice() else { return Err(Fault::NotAFile(Kind::Directory)) };
        let dir = spot.trail.dir();
        // Looked at before it is opened: even to open a FIFO or a device can do something.
        regular(dir.stat(name)?.kind)?;
        if spot.dir_only {
            return Err(Fault::NotADirectory);
        }
        let mut file = match dir.open_file(name) {
            // It has become a link, which is not followed here.
            Err(_) if dir.stat(name).is_ok_and(|meta| meta.kind == Kind::Symlink) => {
                return Err(Fault::Changed);
            }
            opened => opened?,
        };
        let meta = sys::file_meta(&file)?;
        regular(meta.kind)?;
        let available = meta.size.saturating_sub(range.offset);
        let wanted = range.length.unwrap_or(u64::MAX);
        let expected = available.min(wanted);
        if expected > limit {
            return Err(Fault::TooLarge { limit, attempted: expected, op: FileOp::Read });
        }
        if range.offset > 0 && range.offset >= meta.size {
            // Nothing is there, and some systems refuse to seek so far.
            return Ok(FileContents { bytes: Vec::new(), truncated: false });
        }
        file.seek(SeekFrom::Start(range.offset))?;
        // One byte more than asked for tells whether more follow, and whether the file grew over the limit.
        let most = wanted.min(limit).saturating_add(1);
        let mut bytes = Vec::with_capacity(usize::try_from(expected.saturating_add(1)).unwrap_or(0));
        (&mut file).take(most).read_to_end(&mut bytes)?;
        let read = bytes.len() as u64;
        if read > limit && wanted > limit {
            return Err(Fault::TooLarge { limit, attempted: read, op: FileOp::Read });
        }
        let truncated = read > wanted;
        if truncated {
            bytes.pop();
        }
        Ok(FileContents { bytes, truncated })
    }
}

/// Refuses what is no regular file.
pub(super) fn regular(kind: Kind) -> Outcome<()> {
    match kind {
        Kind::File => Ok(()),
        // The walk had followed a link; this one is new.
        Kind::Symlink => Err(Fault::Changed),
        Kind::Directory | Kind::Fifo | Kind::Socket | Kind::Device | Kind::Other => {
            Err(Fault::NotAFile(kind))
        }
    }
}

//! Exports: a zip of the log's files with `manifest.json` (name, size, sha256 of each) and `manifest.sig`, the
//! HMAC-SHA256 of the manifest in hex. No manifest is a record (it has no `seq`), so the key can be the same.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::error::AuditError;
use crate::key::{AuditKey, KeyedMac, hex_string, parse_hex};
use crate::names::{LOG, log_files};
use crate::os;
use crate::report::{Fault, Problem, Report};
use crate::verify::check_stream;

const MANIFEST: &str = "manifest.json";
const SIGNATURE: &str = "manifest.sig";
/// A manifest has a hundred bytes or so a file.
const MAX_MANIFEST: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct Manifest {
    files: Vec<Listed>,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    name: String,
    size: u64,
    sha256: String,
}

/// Writes the log in `dir` to a new zip file (mode 0600). The log may be written meanwhile; the export holds it up to a
/// line.
///
/// # Errors
/// [`AuditError::Io`], also if `out` exists; [`AuditError::Export`].
pub fn export(dir: &Path, key: &AuditKey, out: &Path) -> Result<(), AuditError> {
    let file = os::create_private(out).map_err(AuditError::io("create", out))?;
    let written = write_zip(dir, key, file);
    if written.is_err() {
        // Half an export is none.
        let _ = std::fs::remove_file(out);
    }
    written.map_err(|reason| AuditError::Export { path: out.to_owned(), reason })
}

fn write_zip(dir: &Path, key: &AuditKey, file: File) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let mut zip = ZipWriter::new(file);
    let options = SimpleFileOptions::default().large_file(true).unix_permissions(0o600);
    let mut manifest = Manifest { files: Vec::new() };
    for path in log_files(dir).map_err(|error| text(&error))? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(LOG).to_owned();
        zip.start_file(&name, options).map_err(|error| text(&error))?;
        let (size, sha256) = copy_lines(&path, &mut zip).map_err(|error| text(&error))?;
        manifest.files.push(Listed { name, size, sha256 });
    }
    let json = serde_json::to_vec_pretty(&manifest).map_err(|error| text(&error))?;
    let signature = hex_string(&key.mac().hex_of(&[&json]));
    for (name, content) in [(MANIFEST, json.as_slice()), (SIGNATURE, signature.as_bytes())] {
        zip.start_file(name, options).map_err(|error| text(&error))?;
        zip.write_all(content).map_err(|error| text(&error))?;
    }
    let file = zip.finish().map_err(|error| text(&error))?;
    file.sync_all().map_err(|error| text(&error))
}

/// Copies a file as long as it is now, up to its last newline if it is the log being written.
fn copy_lines(path: &Path, target: &mut impl Write) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut length = file.metadata()?.len();
    if path.file_name().is_some_and(|name| name == LOG) {
        length = whole_lines(&mut file, length)?;
    }
    let (mut digest, mut left) = (Sha256::new(), length);
    let mut piece = vec![0; 256 << 10];
    while left > 0 {
        let wanted = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.read_exact(&mut piece[..wanted])?;
        digest.update(&piece[..wanted]);
        target.write_all(&piece[..wanted])?;
        left -= wanted as u64;
    }
    Ok((length, hex::encode(digest.finalize())))
}

fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let from = length.saturating_sub(1 << 20);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(length - from).read_to_end(&mut end)?;
    file.rewind()?;
    Ok(end.iter().rposition(|&b| b == b'\n').map_or(length, |at| from + at as u64 + 1))
}

/// Verifies an export: its signature, that it holds what the manifest lists and nothing else, and the chain of each file.
#[must_use]
pub fn verify_export(zip: &Path, key: &AuditKey) -> Report {
    let mut report = Report::default();
    if let Err(fault) = check_zip(zip, &key.mac(), &mut report) {
        report.problems.push(Problem { path: zip.to_owned(), line: None, seq: None, fault });
    }
    report
}

fn check_zip(path: &Path, mac: &KeyedMac, report: &mut Report) -> Result<(), Fault> {
    let unreadable = |error: &dyn std::error::Error| Fault::Unreadable { reason: error.to_string() };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let mut zip = ZipArchive::new(file).map_err(|error| unreadable(&error))?;
    let json = read_member(&mut zip, MANIFEST)?;
    let signature = read_member(&mut zip, SIGNATURE)?;
    if !parse_hex(signature.trim_ascii()).is_some_and(|claimed| mac.matches(&[&json], &claimed)) {
        return Err(Fault::Manifest {
            reason: "the manifest was changed, or signed with another key".to_owned(),
        });
    }
    let manifest: Manifest = serde_json::from_slice(&json).map_err(|error| unreadable(&error))?;
    let listed =
        |name: &str| name == MANIFEST || name == SIGNATURE || manifest.files.iter().any(|f| f.name == name);
    for name in zip.file_names() {
        let name = name.map_err(|error| unreadable(&error))?;
        if !listed(&name) {
            return Err(Fault::Manifest { reason: format!("{name} is not in the manifest") });
        }
    }
    for file in manifest.files.iter().rev() {
        check_member(&mut zip, file, mac, report)?;
    }
    Ok(())
}

fn check_member(
    zip: &mut ZipArchive<File>,
    listed: &Listed,
    mac: &KeyedMac,
    report: &mut Report,
) -> Result<(), Fault> {
    let name = &listed.name;
    let member = zip
        .by_name(name)
        .map_err(|error| Fault::Manifest { reason: format!("{name} is in the manifest only: {error}") })?;
    let mut hashed =
        Hashed { inner: member.take(listed.size.saturating_add(1)), digest: Sha256::new(), size: 0 };
    let checked = check_stream(&PathBuf::from(name), &mut hashed, u64::MAX, mac, &[], false);
    // What follows a bad line counts for the digest too.
    io::copy(&mut hashed, &mut io::sink())
        .map_err(|error| Fault::Unreadable { reason: error.to_string() })?;
    checked.into_report(report);
    if hashed.size != listed.size || hex::encode(hashed.digest.finalize()) != listed.sha256 {
        return Err(Fault::Manifest { reason: format!("{name} is not the file that the manifest lists") });
    }
    Ok(())
}

fn read_member(zip: &mut ZipArchive<File>, name: &str) -> Result<Vec<u8>, Fault> {
    let mut content = Vec::new();
    let member = zip.by_name(name).map_err(|_| Fault::Manifest { reason: format!("there is no {name}") })?;
    let read = member.take(MAX_MANIFEST).read_to_end(&mut content);
    read.map(|_| content).map_err(|error| Fault::Unreadable { reason: error.to_string() })
}

/// Hashes what is read through it.
struct Hashed<R> {
    inner: R,
    digest: Sha256,
    size: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.digest.update(&buffer[..read]);
        self.size += read as u64;
        Ok(read)
    }
}

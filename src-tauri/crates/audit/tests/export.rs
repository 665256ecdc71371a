//! Exports.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test helpers panic as tests do")]

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use audit::{AuditError, AuditKey, Fault, export, verify_export};
use sha2::{Digest, Sha256};
use support::{file_read, key, open};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

fn exported() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir.path().join("log"));
    for number in 0..10 {
        log.record(file_read(number)).unwrap();
        if number == 4 {
            log.rotate().unwrap();
        }
    }
    let out = dir.path().join("export.zip");
    export(&dir.path().join("log"), &key(), &out).unwrap(); // while it is open
    (dir, out)
}

fn members(zip: &Path) -> Vec<(String, Vec<u8>)> {
    let mut zip = ZipArchive::new(File::open(zip).unwrap()).unwrap();
    (0..zip.len())
        .map(|index| {
            let mut member = zip.by_index(index).unwrap();
            let mut content = Vec::new();
            member.read_to_end(&mut content).unwrap();
            (member.name().unwrap().into_owned(), content)
        })
        .collect()
}

fn pack(zip: &Path, members: &[(String, Vec<u8>)]) {
    let mut writer = ZipWriter::new(File::create(zip).unwrap());
    for (name, content) in members {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn an_export_verifies_and_holds_what_its_manifest_lists() {
    let (_dir, out) = exported();
    let report = verify_export(&out, &key());
    assert!(report.is_ok(), "{report}");
    assert_eq!(report.records(), 11);
    let members = members(&out);
    let by_name = |name: &str| &members.iter().find(|(member, _)| member == name).unwrap().1;
    let manifest: serde_json::Value = serde_json::from_slice(by_name("manifest.json")).unwrap();
    for file in manifest["files"].as_array().unwrap() {
        let content = by_name(file["name"].as_str().unwrap());
        assert_eq!(file["size"], content.len());
        assert_eq!(file["sha256"], hex::encode(Sha256::digest(content)));
    }
    assert_eq!(manifest["files"].as_array().unwrap().len() + 2, members.len());
    assert_eq!(verify_export(&out, &AuditKey::new([0; 32])).problems.len(), 1);
}

#[test]
fn an_export_that_was_changed_does_not_verify() {
    let (_dir, out) = exported();
    let original = members(&out);
    let reason = |members: &[(String, Vec<u8>)]| {
        pack(&out, members);
        let report = verify_export(&out, &key());
        match &report.problems.last().expect("a problem").fault {
            Fault::Manifest { reason } => reason.clone(),
            other => panic!("{other}"),
        }
    };
    let mut extended = original.clone();
    extended.push(("extra.txt".into(), b"x".to_vec()));
    assert!(reason(&extended).contains("extra.txt is not in the manifest"));
    assert!(reason(&original[1..]).contains("in the manifest only"));
    let mut cut = original.clone();
    let newline = cut[0].1.iter().position(|&b| b == b'\n').unwrap() + 1;
    cut[0].1.truncate(newline); // verifies as a chain
    assert!(reason(&cut).contains("is not the file"));
    let mut longer = original.clone();
    longer[0].1.extend_from_slice(&vec![b'\n'; 1 << 20]);
    assert!(reason(&longer).contains("is not the file"));
    let mut listed = original.clone();
    let manifest = listed.iter_mut().find(|(name, _)| name == "manifest.json").unwrap();
    manifest.1 = String::from_utf8(manifest.1.clone()).unwrap().replace("audit.log\"", "audit.lag\"").into();
    assert!(reason(&listed).contains("the manifest was changed"));
    let unsigned: Vec<_> = original.iter().filter(|(name, _)| name != "manifest.sig").cloned().collect();
    assert!(reason(&unsigned).contains("no manifest.sig"));
    std::fs::write(&out, "not a zip").unwrap();
    assert!(!verify_export(&out, &key()).is_ok());
}

#[test]
fn an_export_never_overwrites() {
    let (dir, out) = exported();
    let before = std::fs::read(&out).unwrap();
    let again = export(&dir.path().join("log"), &key(), &out);
    assert!(matches!(again, Err(AuditError::Io { .. })));
    assert_eq!(std::fs::read(&out).unwrap(), before);
}

//! `tests/vectors/audit-chain.json`: a chain from elsewhere, its lines not canonical on disk.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test helpers panic as tests do")]

mod support;

use audit::{AuditKey, Fault, Report, verify_file, verify_file_against};
use serde::Deserialize;
use serde_json::Value;
use support::rewrite;

#[derive(Deserialize)]
struct Vectors {
    audit_key_hex: String,
    lines: Vec<String>,
    canonical_without_hmac: Vec<String>,
    tampered: Vec<Tampered>,
}

#[derive(Deserialize)]
struct Tampered {
    line: usize,
    change: String,
    expect: String,
}

fn vectors() -> Vectors {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vectors/audit-chain.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

impl Vectors {
    fn key(&self) -> AuditKey {
        let mut key = [0; 32];
        hex::decode_to_slice(&self.audit_key_hex, &mut key).unwrap();
        AuditKey::new(key)
    }

    fn verify(&self, lines: &[String]) -> Report {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        rewrite(&path, lines);
        verify_file(&path, &self.key())
    }
}

#[test]
fn the_chain_verifies() {
    let vectors = vectors();
    let report = vectors.verify(&vectors.lines);
    assert!(report.is_ok(), "{report}");
    assert_eq!(report.records(), vectors.lines.len() as u64);
}

#[test]
fn canonical_forms_and_hmacs_are_those_of_the_vectors() {
    let vectors = vectors();
    for (line, canonical) in vectors.lines.iter().zip(&vectors.canonical_without_hmac) {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let hmac = record.as_object_mut().unwrap().remove("hmac").unwrap();
        assert_eq!(&serde_json_canonicalizer::to_string(&record).unwrap(), canonical);
        // `derive` is the plain HMAC of a text.
        assert_eq!(hex::encode(vectors.key().derive(canonical)), hmac.as_str().unwrap());
    }
}

#[test]
fn a_canonical_line_with_its_hmac_in_place_verifies_too() {
    let vectors = vectors();
    let sorted: Vec<String> = vectors
        .lines
        .iter()
        .map(|line| {
            serde_json_canonicalizer::to_string(&serde_json::from_str::<Value>(line).unwrap()).unwrap()
        })
        .collect();
    let report = vectors.verify(&sorted);
    assert!(report.is_ok(), "{report}");
}

#[test]
fn each_tampered_chain_is_found_out_as_the_vectors_say() {
    let vectors = vectors();
    for tampered in &vectors.tampered {
        let mut lines = vectors.lines.clone();
        match tampered.change.as_str() {
            "line removed" => {
                lines.remove(tampered.line - 1);
            }
            "details.size_bytes_returned 12 to 13" => {
                let line = &mut lines[tampered.line - 1];
                *line = line.replace("\"size_bytes_returned\":12", "\"size_bytes_returned\":13");
            }
            other => panic!("unknown change {other}"),
        }
        assert_ne!(lines, vectors.lines);
        let report = vectors.verify(&lines);
        if tampered.expect.starts_with("verifies") {
            assert!(report.is_ok(), "{}: {report}", tampered.change);
        } else {
            let said = report.problems[0].to_string();
            assert!(said.ends_with(&tampered.expect), "{}: {said}", tampered.change);
        }
    }
}

#[test]
fn a_cut_tail_shows_against_the_last_known_hmac() {
    let vectors = vectors();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let last: Value = serde_json::from_str(vectors.lines.last().unwrap()).unwrap();
    let last = last["hmac"].as_str().unwrap();
    rewrite(&path, &vectors.lines);
    assert!(verify_file_against(&path, &vectors.key(), last).is_ok());
    rewrite(&path, &vectors.lines[..4]);
    let report = verify_file_against(&path, &vectors.key(), last);
    assert_eq!(report.problems[0].fault, Fault::TailCut { known_hmac: last.into(), known_seq: None });
}

#[test]
fn another_key_verifies_nothing() {
    let vectors = vectors();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    rewrite(&path, &vectors.lines);
    let report = verify_file(&path, &AuditKey::new([1; 32]));
    assert_eq!((report.problems[0].line, &report.problems[0].fault), (Some(1), &Fault::Tampered));
}

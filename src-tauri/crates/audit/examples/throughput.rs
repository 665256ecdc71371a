//! Measures a log on this machine: `cargo run --release -p deskhand-audit --example throughput [folder]`.
//!
//! Prints microseconds a record (permit, then write), records a second, and megabytes a second of verification for lines
//! as this crate writes them and for the same records in another order of fields.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use audit::{AuditKey, AuditLog, Entry, Identity, Options, Outcome, log_path, verify_file};
use serde_json::{Map, Value, json};

const RECORDS: u32 = 300_000;

fn entry(details: &Map<String, Value>, number: u32) -> Entry {
    Entry {
        session_id: Some("7b0c1f7e-51a5-4c06-9c39-5d9a2cf9f5a1".into()),
        request_id: Some(format!("req-{number}")),
        op: "FILE_STAT".into(),
        details: details.clone(),
        result: Outcome::success(0),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = match std::env::args_os().nth(1) {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    write(scratch.path())?;
    paced(scratch.path())?;
    verify(scratch.path())?;
    Ok(())
}

fn open(dir: &Path) -> Result<AuditLog, Box<dyn Error>> {
    let identity =
        Identity { machine_id: "3f9a8c12-4b1d-4e8a-9c2a-0f7b8e9d6c5f".into(), shim_version: "0.1.0".into() };
    let options = Options { rotate_bytes: u64::MAX, ..Options::default() };
    Ok(AuditLog::open(dir, AuditKey::new([7; 32]), identity, options)?)
}

fn details() -> Map<String, Value> {
    match json!({"path": "/home/someone/work/project/src/main.rs"}) {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// As fast as it goes.
fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    let log = open(dir)?;
    let details = details();
    let entries: Vec<Entry> = (0..RECORDS).map(|number| entry(&details, number)).collect();
    let started = Instant::now();
    for entry in entries {
        log.reserve()?.write(entry)?;
    }
    let took = started.elapsed();
    println!("flat out    {:6.2} us a record (permit and write)", micros(took) / f64::from(RECORDS));
    println!("            {:6.0} records a second", f64::from(RECORDS) / took.as_secs_f64());
    println!("            {:6.0} bytes a record", log.size_bytes() as f64 / f64::from(RECORDS));
    Ok(())
}

/// One record now and then, as requests come, with the disk syncing in between.
fn paced(dir: &Path) -> Result<(), Box<dyn Error>> {
    let log = open(dir)?;
    let details = details();
    let mut times = Vec::new();
    for number in 0..2_000 {
        let entry = entry(&details, number);
        std::thread::sleep(Duration::from_micros(500));
        let started = Instant::now();
        log.reserve()?.write(entry)?;
        times.push(started.elapsed());
    }
    times.sort();
    let at = |share: f64| micros(times[((times.len() - 1) as f64 * share) as usize]);
    println!("2000/s      {:6.2} us median, {:.2} p90, {:.2} p99", at(0.5), at(0.9), at(0.99));
    Ok(())
}

fn verify(dir: &Path) -> Result<(), Box<dyn Error>> {
    let path = log_path(dir);
    let other = dir.join("unsorted");
    let mut unsorted = std::io::BufWriter::new(std::fs::File::create(&other)?);
    for line in std::fs::read_to_string(&path)?.lines() {
        // `hmac` last, as other writers have it.
        let (before, rest) = line.split_once("\"hmac\":").ok_or("no hmac")?;
        let (hmac, after) = rest.split_at(67);
        writeln!(unsorted, "{before}{},\"hmac\":{}}}", &after[..after.len() - 1], &hmac[..66])?;
    }
    unsorted.flush()?;
    for (name, path) in [("as written", &path), ("unsorted", &other)] {
        let started = Instant::now();
        let report = verify_file(path, &AuditKey::new([7; 32]));
        let took = started.elapsed();
        if !report.is_ok() {
            return Err(report.to_string().into());
        }
        println!("verify      {:6.0} MB/s {name}", report.bytes() as f64 / 1e6 / took.as_secs_f64());
    }
    Ok(())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

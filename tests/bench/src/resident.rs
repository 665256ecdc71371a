//! What `deskhand run` costs while nothing happens, and how soon it is there.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::daemon::Installation;
use crate::measure::{median, ms};
use crate::process;
use crate::report::{Bar, Row};

/// From the last request until it counts as idle: threads for requests end after 10 s without one.
const SETTLES: Duration = Duration::from_secs(11);
/// Holds one ping.
const WATCHED: Duration = Duration::from_secs(21);

/// Memory and processor of an idle `deskhand run` with one session that has worked.
pub(crate) fn idle() -> Result<Vec<Row>> {
    process::need_proc()?;
    let installation = Installation::new()?;
    let daemon = installation.run()?;
    let mut control = installation.control();
    let mut data = installation.session(&mut control, "bench")?;
    installation.request(&mut data, "FILE_STAT", json!({"path": "."}))?;
    installation.request(&mut data, "EXECUTE_COMMAND", json!({"command": "true"}))?;
    installation.keep_alive([&mut control, &mut data], SETTLES);
    let pid = daemon.pid();
    let (began, before) = (Instant::now(), pid.cpu());
    installation.keep_alive([&mut control, &mut data], WATCHED);
    let (took, after) = (began.elapsed(), pid.cpu());
    let ran: u64 = after.iter().map(|(thread, ran)| ran - before.get(thread).copied().unwrap_or(0)).sum();
    let tree = pid.own_tree();
    let pss = process::pss_mb(&tree);
    ensure!(pss > 0.0, "it ended");
    let note = format!("{} process(es), {} threads; one session", tree.len(), after.len());
    let cpu_note = format!("{:.2} ms in {:.0} s", ran as f64 / 1e6, took.as_secs_f64());
    Ok(vec![
        Row { name: "idle-pss", ours: pss, floor: None, unit: "MB", bar: Bar::AtMost(12.0), note },
        Row {
            name: "idle-cpu",
            ours: ran as f64 / took.as_nanos() as f64 * 100.0,
            floor: None,
            unit: "%",
            bar: Bar::AtMost(0.05),
            note: cpu_note,
        },
    ])
}

const STARTS: usize = 9;

/// From exec to the HELLO on the platform's socket, less the key derivation measured just before.
pub(crate) fn hello() -> Result<Vec<Row>> {
    let installation = Installation::new()?;
    let (mut totals, mut derivations, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let derivation = installation.key_derivation_ms()?;
        let daemon = installation.run()?;
        let total = installation.runtime.block_on(async {
            let mut peer = installation.scripted.accept().await;
            let hello = peer.receive().await;
            ensure!(hello.kind == "HELLO", "{hello:?}");
            Ok(ms(daemon.began.elapsed()))
        })?;
        totals.push(total);
        derivations.push(derivation);
        rest.push(total - derivation);
    }
    let note = format!(
        "exec to HELLO {:.1} ms, of which key derivation (measured beside it) {:.1} ms",
        median(totals),
        median(derivations)
    );
    let ours = median(rest);
    Ok(vec![Row { name: "hello", ours, floor: None, unit: "ms", bar: Bar::AtMost(40.0), note }])
}

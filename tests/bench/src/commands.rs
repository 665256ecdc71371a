//! `EXECUTE_COMMAND`: what it costs over a bare spawn, and what becomes of much output.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::daemon::Installation;
use crate::measure::{Pair, in_turn, median, ms};
use crate::process::{self, Pid};
use crate::report::{Bar, Row};
use crate::wire::{Ours, frame};

/// How the command is given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// A program and its arguments.
    Argv,
    /// A line for a shell.
    Line,
}

const ROUNDS: usize = 7;
const COMMANDS: usize = 25;
/// Between commands, as an agent leaves them: the supervisor of the next one is there by then.
const PAUSE: Duration = Duration::from_millis(20);

/// `true`, in each form beside the same spawned and waited for.
pub(crate) fn exec(form: Form) -> Result<Vec<Row>> {
    let (name, payload, argv): (_, _, &[&str]) = match form {
        Form::Argv => ("exec-argv", json!({"argv": ["true"]}), &["true"]),
        Form::Line => ("exec-line", json!({"command": "true"}), &["bash", "-c", "true"]),
    };
    let mut started = Ours::start()?;
    let platform = started.platform();
    let frames: Vec<Utf8Bytes> =
        (0..COMMANDS).map(|number| frame("EXECUTE_COMMAND", number, &payload)).collect();
    let Pair { ours, floor } = in_turn(
        ROUNDS,
        || {
            let each = frames.iter().map(|frame| Ok(ms(platform.drive(std::slice::from_ref(frame), 1)?)));
            Ok(median(each.collect::<Result<_>>()?))
        },
        || Ok(median((0..COMMANDS).map(|_| spawned(argv)).collect::<Result<_>>()?)),
    )?;
    let paced = frames.iter().map(|frame| {
        std::thread::sleep(PAUSE);
        Ok(ms(platform.drive(std::slice::from_ref(frame), 1)?))
    });
    let paced = median(paced.collect::<Result<_>>()?);
    let paced_floor = median(
        (0..COMMANDS)
            .map(|_| {
                std::thread::sleep(PAUSE);
                spawned(argv)
            })
            .collect::<Result<_>>()?,
    );
    let note = format!(
        "{payload}, back to back; floor: spawned and waited for; {:.2} ms over with {} ms between",
        paced - paced_floor,
        PAUSE.as_millis()
    );
    Ok(vec![Row { name, ours, floor: Some(floor), unit: "ms", bar: Bar::OverFloorAtMost(2.0), note }])
}

fn spawned(argv: &[&str]) -> Result<f64> {
    let began = Instant::now();
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ensure!(command.spawn()?.wait()?.success(), "{argv:?} failed");
    Ok(ms(began.elapsed()))
}

const OUTPUT_BYTES: u64 = 300_000_000;
const ZEROS_ROUNDS: usize = 5;
/// Between looks at the memory: the answer, which needs most, takes tens of milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// 300 MB of output through the real `deskhand`. NULs are what costs most: six bytes each in the answer.
pub(crate) fn output() -> Result<Vec<Row>> {
    process::need_proc()?;
    let installation = Installation::new()?;
    let daemon = installation.run()?;
    let mut control = installation.control();
    let mut data = installation.session(&mut control, "bench")?;
    let produce = format!("head -c {OUTPUT_BYTES} /dev/zero");
    let text = format!("yes deskhand | head -c {OUTPUT_BYTES}");
    let mut whole = Vec::new();
    // Drained while the command ran; making and sending the answer of NULs comes after that, and is said beside it.
    let mut run = |command: &str| -> Result<f64> {
        let began = Instant::now();
        let answer = installation.request(&mut data, "EXECUTE_COMMAND", json!({"command": command}))?;
        whole.push(ms(began.elapsed()));
        let ran = answer["duration_seconds"].as_f64().context("no duration")?;
        ensure!(answer["output_truncated"] == true && answer["exit_code"] == 0, "not what was asked for");
        Ok(OUTPUT_BYTES as f64 / 1e6 / ran)
    };
    let drained = |command: &str| -> Result<f64> {
        let began = Instant::now();
        let line = format!("{command} | cat >/dev/null");
        ensure!(Command::new("bash").args(["-c", &line]).status()?.success(), "{line} failed");
        Ok(OUTPUT_BYTES as f64 / 1e6 / began.elapsed().as_secs_f64())
    };
    let zeros = in_turn(ZEROS_ROUNDS, || run(&produce), || drained(&produce))?;
    let texts = in_turn(3, || run(&text), || drained(&text))?;
    let (of_text, of_zeros) =
        (peak_pss(daemon.pid(), || run(&text))?, peak_pss(daemon.pid(), || run(&produce))?);
    whole.truncate(1 + ZEROS_ROUNDS); // the warm-up and the rounds of zeros came first
    let rate_note = format!(
        "head -c of /dev/zero while it ran; of `yes` text {:.2}; with the answer {:.0} ms",
        texts.ours / texts.floor,
        median(whole)
    );
    let pss_note = format!(
        "at the answer, supervisors included; of text {of_text:.1}; most ever resident {:.1}",
        daemon.pid().peak_rss_mb()
    );
    let (rate, pss) = (Bar::RatioAtLeast(0.7), Bar::AtMost(60.0));
    Ok(vec![
        Row {
            name: "output-rate",
            ours: zeros.ours,
            floor: Some(zeros.floor),
            unit: "MB/s",
            bar: rate,
            note: rate_note,
        },
        Row { name: "output-pss", ours: of_zeros, floor: None, unit: "MB", bar: pss, note: pss_note },
    ])
}

/// The most that the process and its supervisors had while `work` was done, in MB.
fn peak_pss(pid: Pid, mut work: impl FnMut() -> Result<f64>) -> Result<f64> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut peak, mut tree) = (0.0_f64, pid.own_tree());
            for look in 0_u32.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                // Reading all of /proc takes longer than a look at few processes.
                if look % 16 == 0 {
                    tree = pid.own_tree();
                }
                peak = peak.max(process::pss_mb(&tree));
                std::thread::sleep(LOOK_EVERY);
            }
            peak
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let peak = watch.join().map_err(|_| anyhow::anyhow!("watching the memory failed"))?;
        worked.map(|_| peak)
    })
}

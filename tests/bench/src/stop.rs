//! The kill switch, from outside: `deskhand stop`.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::daemon::Installation;
use crate::measure::{median, ms};
use crate::process::{self, Pid};
use crate::report::{Bar, Row};

const SESSIONS: usize = 8;
/// Of each session: some that were answered and live on in the background, one that is waited for.
const IN_BACKGROUND: usize = 3;
const COMMANDS: usize = SESSIONS * (IN_BACKGROUND + 1);
const ROUNDS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(20);

/// What one stop took, in milliseconds from the execution of `deskhand stop`.
struct Stopped {
    sockets: f64,
    processes: f64,
    answered: f64,
    processes_count: usize,
}

/// 8 sessions, 32 commands running. The bar is on the last socket and the last process.
pub(crate) fn stop() -> Result<Vec<Row>> {
    process::need_proc()?;
    let rounds = (0..ROUNDS).map(|_| once()).collect::<Result<Vec<_>>>()?;
    let of = |figure: fn(&Stopped) -> f64| median(rounds.iter().map(figure).collect());
    let note = format!(
        "from exec of `deskhand stop`: sockets {:.1}, {} processes {:.1}, it said so {:.1}",
        of(|s| s.sockets),
        rounds.first().map_or(0, |s| s.processes_count),
        of(|s| s.processes),
        of(|s| s.answered)
    );
    let ours = of(|s| s.sockets.max(s.processes));
    Ok(vec![Row { name: "stop", ours, floor: None, unit: "ms", bar: Bar::AtMost(250.0), note }])
}

fn once() -> Result<Stopped> {
    let installation = Installation::new()?;
    let daemon = installation.run()?;
    let mut control = installation.control();
    let mut peers = Vec::new();
    for number in 0..SESSIONS {
        let mut data = installation.session(&mut control, &format!("bench-{number}"))?;
        for _ in 0..IN_BACKGROUND {
            let command = json!({"command": "sleep 600 >/dev/null 2>&1 &"});
            installation.request(&mut data, "EXECUTE_COMMAND", command)?;
        }
        installation.runtime.block_on(data.send("EXECUTE_COMMAND", json!({"argv": ["sleep", "600"]})));
        peers.push(data);
    }
    peers.push(control);
    let processes = running(daemon.pid())?;

    let mut stop = installation.command(&["stop"])?;
    let (tell, dead) = mpsc::channel();
    let began = Instant::now();
    std::thread::spawn({
        let processes = processes.clone();
        move || tell.send(all_dead(&processes))
    });
    let mut stopping = stop.spawn()?;
    let sockets = installation.runtime.block_on(async {
        let ends = peers.into_iter().map(|mut peer| {
            tokio::spawn(async move {
                peer.end().await;
                Instant::now()
            })
        });
        let mut last = began;
        for end in ends.collect::<Vec<_>>() {
            last = last.max(end.await?);
        }
        anyhow::Ok(last)
    })?;
    ensure!(stopping.wait()?.success(), "`deskhand stop` failed");
    let answered = began.elapsed();
    let dead = dead.recv().context("nobody watched")?.context("a process lives on")?;
    Ok(Stopped {
        sockets: ms(sockets - began),
        processes: ms(dead - began),
        answered: ms(answered),
        processes_count: processes.len(),
    })
}

/// Everything below the daemon, once all commands run.
fn running(daemon: Pid) -> Result<Vec<Pid>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let tree: Vec<Pid> = daemon.tree().into_iter().filter(|pid| *pid != daemon).collect();
        if tree.iter().filter(|pid| pid.name() == "sleep").count() == COMMANDS {
            return Ok(tree);
        }
        ensure!(Instant::now() < deadline, "not {COMMANDS} commands run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// When the last of them was gone.
fn all_dead(processes: &[Pid]) -> Option<Instant> {
    let deadline = Instant::now() + PATIENCE;
    let mut left = processes.to_vec();
    while !left.is_empty() {
        left.retain(|pid| pid.is_alive());
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Some(Instant::now())
}

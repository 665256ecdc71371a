//! What a host adds to a bare spawn and wait, and how fast a flood is drained. Run it in a release build.
#![allow(clippy::unwrap_used, reason = "a figure that cannot be measured is not printed")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exec::{CommandSpec, Cwd, Host, Program, Shell};

const ROUNDS: usize = 200;

fn main() {
    exec::supervisor::run_if_asked();
    let host = Host::new().unwrap();
    latency(&host, Duration::ZERO, "one right after the other");
    latency(&host, Duration::from_millis(5), "5 ms between them");
    throughput(&host);
}

fn latency(host: &Host, pause: Duration, what: &str) {
    let mut bare = Vec::new();
    let mut hosted = Vec::new();
    for _ in 0..ROUNDS {
        std::thread::sleep(pause);
        bare.push(time(|| {
            Command::new("true").stdin(Stdio::null()).output().unwrap();
        }));
        std::thread::sleep(pause);
        hosted.push(time(|| {
            let outcome = host.start("bench", spec(Program::Argv(vec!["true".to_owned()]))).unwrap().wait();
            assert_eq!(outcome.exit_code, 0);
        }));
    }
    bare.sort();
    hosted.sort();
    for (share, name) in [(2, "median"), (20, "p95")] {
        let at = if share == 2 { ROUNDS / 2 } else { ROUNDS - ROUNDS / share };
        println!("true, {what}, {name}: bare {:?}, hosted {:?}", bare[at], hosted[at]);
    }
}

fn throughput(host: &Host) {
    let produce = "head -c 300000000 /dev/zero";
    for _ in 0..3 {
        let bare = time(|| {
            let piped = format!("{produce} | cat > /dev/null");
            Command::new("sh").args(["-c", &piped]).status().unwrap();
        });
        let hosted = time(|| {
            let line = Program::Line { shell: Shell::Sh, command: produce.to_owned() };
            assert!(host.start("bench", spec(line)).unwrap().wait().output_truncated);
        });
        println!(
            "300 MB: cat {bare:?}, hosted {hosted:?}, ratio {:.2}",
            bare.as_secs_f64() / hosted.as_secs_f64()
        );
    }
}

fn spec(program: Program) -> CommandSpec {
    CommandSpec {
        program,
        cwd: Cwd::open(&std::env::temp_dir()).unwrap(),
        timeout: Duration::from_secs(60),
        env: Vec::new(),
        output_limit: 1 << 20,
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

//! `FILE_STAT`, `FILE_READ`, `FILE_WRITE` over a socket, beside an echo.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::measure::{Pair, in_turn, median, ms};
use crate::report::{Bar, Row};
use crate::wire::{Answer, Floor, Ours, Platform, frame};

const ROUNDS: usize = 9;
const AT_LEAST: Bar = Bar::RatioAtLeast(0.6);

/// How much of what is sent in one round.
struct Load {
    frames: Vec<Utf8Bytes>,
    at_once: usize,
}

impl Load {
    fn new(kind: &str, payload: &Value, count: usize, at_once: usize) -> Self {
        Self { frames: (0..count).map(|number| frame(kind, number, payload)).collect(), at_once }
    }

    /// Answers a second.
    fn rate(&self, platform: &mut Platform) -> Result<f64> {
        let took = platform.drive(&self.frames, self.at_once)?;
        Ok(self.frames.len() as f64 / took.as_secs_f64())
    }
}

/// Round trips of `FILE_STAT`. The floor answers with what ours answered: the same bytes both ways.
pub(crate) fn stat(at_once: usize) -> Result<Vec<Row>> {
    let mut ours = Ours::start()?;
    std::fs::write(ours.rig.root.join("a-file.txt"), "some text")?;
    let load = Load::new("FILE_STAT", &json!({"path": "a-file.txt"}), 1000, at_once);
    let answer = ours.platform().ask(load.frames[0].clone())?;
    let mut floor = Floor::start(Answer::With(answer))?;
    let Pair { ours, floor } =
        in_turn(ROUNDS, || load.rate(ours.platform()), || load.rate(floor.platform()))?;
    let name = if at_once == 1 { "stat-1" } else { "stat-4" };
    let note =
        format!("FILE_STAT, {at_once} in flight; {:.1} us over the echo for each", 1e6 / ours - 1e6 / floor);
    Ok(vec![Row { name, ours, floor: Some(floor), unit: "req/s", bar: AT_LEAST, note }])
}

/// `FILE_READ` of 8 MiB as base64. The echo sends the answer's frame and gets it back.
pub(crate) fn read() -> Result<Vec<Row>> {
    let mut ours = Ours::start()?;
    let content: Vec<u8> = (0..8 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(ours.rig.root.join("eight"), content)?;
    let request = json!({"path": "eight", "encoding": "base64"});
    let load = Load::new("FILE_READ", &request, 5, 1);
    let answer = ours.platform().ask(load.frames[0].clone())?;
    let echoed = Load { frames: vec![answer.clone(); 5], at_once: 1 };
    let mut echo = Floor::start(Answer::Echo)?;
    let mut one_way = Floor::start(Answer::With(answer))?;
    let strict = in_turn(3, || load.rate(ours.platform()), || load.rate(one_way.platform()))?;
    let Pair { ours, floor } =
        in_turn(ROUNDS, || load.rate(ours.platform()), || echoed.rate(echo.platform()))?;
    let note = format!(
        "FILE_READ 8 MiB; {:.2} of a peer that has the answer ready and is sent the request alone",
        strict.ours / strict.floor
    );
    Ok(vec![Row { name: "read-8m", ours, floor: Some(floor), unit: "req/s", bar: AT_LEAST, note }])
}

/// `FILE_WRITE` of 1 MiB as base64, to the disk with fsync. The echo sends the request's frame and gets it back.
pub(crate) fn write() -> Result<Vec<Row>> {
    let mut ours = Ours::start()?;
    let root = ours.rig.root.clone();
    let content = "QUJD".repeat((1 << 20) / 3) + "QQ==";
    let request = json!({"path": "written", "content": content, "encoding": "base64"});
    let load = Load::new("FILE_WRITE", &request, 20, 1);
    let answer = ours.platform().ask(load.frames[0].clone())?;
    let mut echo = Floor::start(Answer::Echo)?;
    let mut one_way = Floor::start(Answer::With(answer))?;
    let strict = in_turn(3, || load.rate(ours.platform()), || load.rate(one_way.platform()))?;
    let Pair { ours, floor } = in_turn(ROUNDS, || load.rate(ours.platform()), || load.rate(echo.platform()))?;
    let disk = median((0..ROUNDS).map(|_| durable_write(&root)).collect::<Result<_>>()?);
    let note = format!(
        "FILE_WRITE 1 MiB: {:.2} ms, of which the disk {disk:.2} (the same done bare); {:.2} of a peer that only acknowledges",
        1e3 / ours,
        strict.ours / strict.floor
    );
    Ok(vec![Row { name: "write-1m", ours, floor: Some(floor), unit: "req/s", bar: AT_LEAST, note }])
}

/// What the contract asks of the disk for 1 MiB: a file beside it, made durable, renamed into place. In milliseconds.
fn durable_write(folder: &Path) -> Result<f64> {
    let content = vec![b'A'; 1 << 20];
    let (beside, place) = (folder.join("beside"), folder.join("bare"));
    let began = Instant::now();
    let mut file = File::create(&beside)?;
    file.write_all(&content)?;
    file.sync_all()?;
    std::fs::rename(&beside, &place)?;
    Ok(ms(began.elapsed()))
}

//! What a supervisor is told to run, and what it reports.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::windows::ffi::{OsStrExt, OsStringExt};

/// The first argument that makes a process of ours a supervisor. Nothing a person would type.
pub(super) const ARGUMENT: &str = "--exec-supervisor-of-a-command";

/// A program and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    /// Put behind the arguments as it is.
    pub(super) verbatim: Option<OsString>,
}

impl Order {
    /// Words of UTF-16, each with a NUL behind it: the program, the arguments, and the verbatim end or
    /// nothing with a word before it that says which.
    pub(super) fn encode(&self) -> Vec<u8> {
        let flag = OsString::from(if self.verbatim.is_some() { "verbatim" } else { "plain" });
        let words = [&flag, &self.program].into_iter().chain(&self.arguments).chain(&self.verbatim);
        words.flat_map(|word| word.encode_wide().chain([0])).flat_map(u16::to_le_bytes).collect()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Order> {
        let units: Vec<u16> =
            bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let text = units.strip_suffix(&[0])?;
        let mut words: Vec<OsString> = text.split(|unit| *unit == 0).map(OsString::from_wide).collect();
        let verbatim = if words.first()? == "verbatim" { Some(words.pop()?) } else { None };
        let mut words = words.into_iter().skip(1);
        Some(Order { program: words.next()?, arguments: words.collect(), verbatim })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The command runs, with this process id.
    Started(u32),
    /// It did not start: an OS error.
    Failed(u32),
    /// It did not start: its arguments cannot be given to a batch file safely.
    Unsafe,
    /// It has ended, with this code.
    Exited(u32),
}

impl Report {
    pub(super) fn send(self, mut pipe: impl Write) {
        let (kind, value) = match self {
            Report::Started(pid) => (1, pid),
            Report::Failed(error) => (2, error),
            Report::Unsafe => (3, 0),
            Report::Exited(code) => (4, code),
        };
        let mut record = [0; 8];
        record[..4].copy_from_slice(&u32::to_le_bytes(kind));
        record[4..].copy_from_slice(&u32::to_le_bytes(value));
        // A reader that has gone needs no report.
        let _ = pipe.write_all(&record);
    }

    /// Waits for the next one. None: none will come any more.
    pub(super) fn receive(mut pipe: impl Read) -> io::Result<Option<Report>> {
        let mut record = [0; 8];
        match pipe.read_exact(&mut record) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe) =>
            {
                return Ok(None);
            }
            read => read?,
        }
        let [a, b, c, d, e, f, g, h] = record;
        let value = u32::from_le_bytes([e, f, g, h]);
        Ok(match u32::from_le_bytes([a, b, c, d]) {
            1 => Some(Report::Started(value)),
            2 => Some(Report::Failed(value)),
            3 => Some(Report::Unsafe),
            4 => Some(Report::Exited(value)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_reports_arrive_as_they_were_sent() {
        for verbatim in [None, Some(OsString::from("\"echo é\""))] {
            let arguments = ["", "a b", "\"", "漢"].map(OsString::from).to_vec();
            let order = Order { program: "C:\\x.exe".into(), arguments, verbatim };
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        let mut pipe = Vec::new();
        let reports = [Report::Started(7), Report::Failed(2), Report::Unsafe, Report::Exited(u32::MAX)];
        reports.iter().for_each(|report| report.send(&mut pipe));
        let mut pipe = pipe.as_slice();
        for report in reports {
            assert_eq!(Report::receive(&mut pipe).unwrap(), Some(report));
        }
        assert_eq!(Report::receive(&mut pipe).unwrap(), None);
    }
}

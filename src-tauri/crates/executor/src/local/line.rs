//! JSON lines over a byte stream, none longer than a bound.

use std::io;

use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// What reading a line came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// One line, without its newline.
    Whole(Vec<u8>),
    /// More than the bound came without a newline.
    TooLong,
    /// The other side has closed; half a line counts as none.
    End,
}

/// Reads up to the next newline, and never holds more than `limit` bytes.
pub(super) async fn read(from: &mut (impl AsyncBufRead + Unpin), limit: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let available = from.fill_buf().await?;
        if available.is_empty() {
            return Ok(Line::End);
        }
        let newline = available.iter().position(|&byte| byte == b'\n');
        let taken = newline.unwrap_or(available.len());
        if line.len() + taken > limit {
            return Ok(Line::TooLong);
        }
        line.extend_from_slice(&available[..taken]);
        match newline {
            Some(at) => {
                from.consume(at + 1);
                return Ok(Line::Whole(line));
            }
            None => from.consume(taken),
        }
    }
}

/// Writes `value` as one line. JSON has no newline of its own: inside a string it is escaped.
pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<Line> {
        let mut reader = tokio::io::BufReader::with_capacity(3, input);
        let mut lines = Vec::new();
        loop {
            let line = read(&mut reader, limit).await.unwrap();
            let last = line == Line::End || line == Line::TooLong;
            lines.push(line);
            if last {
                return lines;
            }
        }
    }

    #[tokio::test]
    async fn lines_end_at_newlines_and_half_a_line_is_none() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(lines(b"ab\n\ncdefg\nhi", 8).await, [whole("ab"), whole(""), whole("cdefg"), Line::End]);
    }

    #[tokio::test]
    async fn a_line_over_the_bound_is_not_collected() {
        assert_eq!(lines(b"123456789\n", 8).await, [Line::TooLong]);
        assert_eq!(lines(b"12345678\n", 8).await, [Line::Whole(b"12345678".to_vec()), Line::End]);
    }
}

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration file, at this line (from 1).
    File(PathBuf, usize),
    /// This environment variable.
    Variable(String),
    /// This flag of the command line.
    Flag(&'static str),
    /// Nobody set it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{} line {line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
            Self::Default => f.write_str("default settings"),
        }
    }
}

/// Why there is no usable configuration. Every message says where, what, and what would be right.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than a configuration can be.
    #[error("{path} is larger than {limit} bytes; it is not a configuration of Deskhand", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size, in bytes.
        limit: u64,
    },
    /// The file is not TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// The place of the fault.
        origin: Origin,
        /// What TOML expects there.
        message: String,
    },
    /// A key that does not exist.
    #[error("{origin}: there is no key `{key}`; did you mean `{nearest}`?")]
    UnknownKey {
        /// The place of the key.
        origin: Origin,
        /// The key as written, dotted.
        key: String,
        /// The most similar key there is.
        nearest: &'static str,
    },
    /// A value that a key cannot have.
    #[error("{origin}: `{key}` {reason}")]
    Invalid {
        /// The place of the value.
        origin: Origin,
        /// The key, dotted.
        key: String,
        /// What it has to be.
        reason: String,
    },
}

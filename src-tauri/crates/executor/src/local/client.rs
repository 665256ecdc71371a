//! The asking end.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::time::timeout;

use super::endpoint;
use super::instance::Instance;
use super::line::{self, Line};
use super::message::{Answer, Refusal, Request};
use super::os::{self, ClientStream};
use crate::events::{Command, StatusReport};

/// A status with every session and its background processes is far shorter.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;
/// A server accepts at once, or it hangs.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// Longer than the server's own patience with the executor.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// Longer than the server waits for the kill switch, and no more: then there are other ways to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(3);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No process runs for this state folder.
    #[error("deskhand is not running: start it with `deskhand run`, `deskhand service install` or the app")]
    NotRunning,
    /// A process runs, and its socket does not answer.
    #[error("deskhand is running{} and does not answer: {reason}",
        .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Silent {
        /// Its process id, if it said so.
        pid: Option<u32>,
        /// What was tried.
        reason: String,
    },
    /// It answered that it would not, or could not.
    #[error("{message}")]
    Refused {
        /// The kind of refusal.
        code: Refusal,
        /// Why, with what to do.
        message: String,
    },
    /// The connection broke, or what came is no answer.
    #[error("the connection to deskhand failed: {0}")]
    Broken(#[from] io::Error),
}

/// A connection to the running process. One request at a time.
#[derive(Debug)]
pub struct Client(BufReader<ClientStream>);

impl Client {
    /// Finds the process of a state folder and connects to it, and to no other one: a command could put a socket of its
    /// own in the place of Deskhand's, and say to everything that it is done.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`], [`ClientError::Silent`].
    pub async fn connect(state_dir: &Path) -> Result<Self, ClientError> {
        let why = match endpoint::look_up(state_dir) {
            Ok(Some(address)) => match timeout(CONNECT_PATIENCE, os::connect(&address)).await {
                Ok(Ok((stream, server))) => match Instance::running(state_dir)? {
                    Some(holder) if is_deskhand(server, holder) => return Ok(Self(BufReader::new(stream))),
                    Some(_) | None => "another program answers at its socket".to_owned(),
                },
                Ok(Err(error)) => format!("{address}: {error}"),
                Err(_) => format!("{address} takes no connection"),
            },
            Ok(None) => "it has opened no socket (yet)".to_owned(),
            Err(error) => format!("where its socket is cannot be read: {error}"),
        };
        match Instance::running(state_dir)? {
            None => Err(ClientError::NotRunning),
            Some(pid) => Err(ClientError::Silent { pid, reason: why }),
        }
    }

    /// The state at this moment.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&mut self) -> Result<StatusReport, ClientError> {
        match self.ask(&Request::Status).await? {
            Answer::Status { report } => Ok(*report),
            other => Err(unexpected(other)),
        }
    }

    /// Whether the running process takes this one for the person's, and not for a command of an agent's.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn is_person(&mut self) -> Result<bool, ClientError> {
        match self.ask(&Request::Standing).await? {
            Answer::Standing { person } => Ok(person),
            other => Err(unexpected(other)),
        }
    }

    /// Has a command carried out. For [`Command::Stop`] the milliseconds that the kill switch took, where known.
    ///
    /// # Errors
    /// [`ClientError::Refused`] when it could not be carried out, or may not be asked for; see [`ClientError`].
    pub async fn command(&mut self, command: Command) -> Result<Option<u64>, ClientError> {
        match self.ask(&Request::Command(command)).await? {
            Answer::Done { took_ms } => Ok(took_ms),
            other => Err(unexpected(other)),
        }
    }

    /// The stream of what happens.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn watch(mut self) -> Result<Watch, ClientError> {
        line::write(&mut self.0, &Request::Watch).await?;
        Ok(Watch(self.0))
    }

    async fn ask(&mut self, request: &Request) -> Result<Answer, ClientError> {
        let exchange = async {
            line::write(&mut self.0, request).await?;
            next(&mut self.0).await
        };
        let patience = match request {
            Request::Command(Command::Stop) => STOP_PATIENCE,
            Request::Command(_) | Request::Status | Request::Standing | Request::Watch => ANSWER_PATIENCE,
        };
        match timeout(patience, exchange).await {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(Ok(None)) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

/// Whether the process at the other end is the one that holds the state folder, and no command that took its place. Where
/// the OS says nothing of either there is nothing to be told.
fn is_deskhand(server: Option<u32>, holder: Option<u32>) -> bool {
    match (server, holder) {
        (Some(server), Some(holder)) => server == holder && !exec::lineage::is_marked(server),
        (Some(server), None) => !exec::lineage::is_marked(server),
        (None, Some(_)) => false,
        (None, None) => true,
    }
}

/// Whether this process is a command of an agent's, or was started by one: by what the OS says of it, or else by the word
/// of the process that runs for `state_dir`. Where neither says so it is the person's.
pub async fn is_inside_command(state_dir: &Path) -> bool {
    if exec::lineage::is_inside_command() {
        return true;
    }
    let standing = async { Client::connect(state_dir).await?.is_person().await };
    matches!(standing.await, Ok(false))
}

/// What happens, as it happens.
#[derive(Debug)]
pub struct Watch(BufReader<ClientStream>);

impl Watch {
    /// The next message: first [`Answer::Status`], then [`Answer::Event`] and [`Answer::Missed`]. `None` when the
    /// process has ended. Not to be cancelled half-way: half a line would be lost.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn next(&mut self) -> Result<Option<Answer>, ClientError> {
        match next(&mut self.0).await? {
            Some(Answer::Refused { code, message }) => Err(ClientError::Refused { code, message }),
            answer => Ok(answer),
        }
    }
}

async fn next(stream: &mut BufReader<ClientStream>) -> Result<Option<Answer>, ClientError> {
    match line::read(stream, LONGEST_ANSWER).await? {
        Line::End => Ok(None),
        Line::TooLong => Err(no_answer("longer than an answer can be")),
        Line::Whole(line) => serde_json::from_slice(&line).map(Some).map_err(|error| {
            no_answer(&format!("not an answer ({error}); do both programs have the same version?"))
        }),
    }
}

fn no_answer(what: &str) -> ClientError {
    io::Error::new(io::ErrorKind::InvalidData, what).into()
}

fn unexpected(answer: Answer) -> ClientError {
    match answer {
        Answer::Refused { code, message } => ClientError::Refused { code, message },
        Answer::Status { .. }
        | Answer::Standing { .. }
        | Answer::Done { .. }
        | Answer::Event { .. }
        | Answer::Missed { .. } => no_answer("an answer to something else"),
    }
}

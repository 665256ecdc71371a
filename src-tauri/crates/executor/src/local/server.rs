//! The serving end.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::endpoint;
use super::instance::Instance;
use super::line::{self, Line};
use super::message::{Answer, Refusal, Request};
use super::os::Listener;
use super::peer::{self, Standing};
use super::stop::{Stop, Thrown};
use crate::events::{Command, CommandFailed, Event, StatusReport};

/// No request is nearly as long.
const LONGEST_REQUEST: usize = 16 * 1024;
/// Peers at one time. A person has one or two terminals and an app.
const PERSON_SLOTS: usize = 32;
/// Of those, the ones that watch: they stay.
const WATCH_SLOTS: usize = 16;
/// The agent's own commands have few, apart from the person's.
const COMMAND_SLOTS: usize = 4;
/// From one request's answer to the next request.
const REQUEST_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// From a request to the executor's answer. A disconnect waits for commands to be ended, which takes 2 s.
const HOST_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// For a client to take an answer.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);
/// After an accept that failed, which happens when the process is out of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Who answers: the executor, or a test's stand-in. All of it runs on [`Setup::executor`].
pub trait Host: Send + Sync + 'static {
    /// The state at this moment.
    fn status(&self) -> StatusReport;
    /// Carries a command out. [`Command::Stop`] never comes this way.
    fn command(&self, command: Command) -> impl Future<Output = Result<(), CommandFailed>> + Send;
    /// The stream of events from now on.
    fn subscribe(&self) -> broadcast::Receiver<Event>;
}

/// What a server is made of.
pub struct Setup<H> {
    /// Where the socket goes ([`crate::config::Dirs::runtime`]); must exist, and be writable by nobody else.
    pub runtime_dir: PathBuf,
    /// Who answers.
    pub host: H,
    /// The runtime on which `host` is asked. When it hangs, the server says so; it does not hang with it.
    pub executor: Handle,
    /// The kill switch. Called on a thread of its own; may return at once or when nothing is left.
    pub stop: Arc<dyn Fn() + Send + Sync>,
    /// Whether a process is a command of the agent's, or was started by one, over what descent shows: the OS may have lost
    /// that, and a survivor of an earlier run never had it. [`Executor::is_command`](crate::Executor::is_command).
    pub is_command: Arc<dyn Fn(u32) -> bool + Send + Sync>,
}

/// Why there is no local socket.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// It cannot be made.
    #[error("cannot open the local socket in {}: {source}", .runtime_dir.display())]
    Bind {
        /// Where it was to be.
        runtime_dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be published for clients to find.
    #[error("cannot write to {}: {source}", .state_dir.display())]
    Publish {
        /// Where that would have been.
        state_dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The local socket. Dropping it closes it and every connection.
pub struct Server {
    closing: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Opens the socket and serves it from a thread of its own. Clients can connect when this returns.
    ///
    /// # Errors
    /// See [`LocalError`].
    pub fn start<H: Host>(instance: &Instance, setup: Setup<H>) -> Result<Self, LocalError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LocalError::Thread)?;
        let listener = {
            let _inside = runtime.enter();
            let bind = |source| LocalError::Bind { runtime_dir: setup.runtime_dir.clone(), source };
            Listener::bind(&setup.runtime_dir).map_err(bind)?
        };
        let publish = |source| LocalError::Publish { state_dir: instance.state_dir().to_owned(), source };
        let address = listener.address().map_err(publish)?;
        let published = endpoint::publish(instance, &address).map_err(publish)?;

        let closing = CancellationToken::new();
        let (kills, killed) = watch::channel(None);
        let events = setup.host.subscribe();
        let stop = Stop::start(setup.stop, killed).map_err(LocalError::Thread)?;
        let shared = Arc::new(Shared {
            host: Arc::new(setup.host),
            executor: setup.executor,
            stop,
            is_command: setup.is_command,
            person: Arc::new(Semaphore::new(PERSON_SLOTS)),
            commands: Arc::new(Semaphore::new(COMMAND_SLOTS)),
            watchers: Semaphore::new(WATCH_SLOTS),
        });
        let until = closing.clone();
        let serve = move || {
            runtime.block_on(async {
                tokio::spawn(note_kills(events, kills));
                until.run_until_cancelled(serve(listener, shared)).await;
            });
            drop(published);
        };
        let thread =
            thread::Builder::new().name("local-socket".into()).spawn(serve).map_err(LocalError::Thread)?;
        Ok(Self { closing, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

struct Shared<H> {
    host: Arc<H>,
    executor: Handle,
    stop: Stop,
    is_command: Arc<dyn Fn(u32) -> bool + Send + Sync>,
    person: Arc<Semaphore>,
    commands: Arc<Semaphore>,
    watchers: Semaphore,
}

/// Keeps the last kill's report where `stop` finds it without asking anybody.
async fn note_kills(mut events: broadcast::Receiver<Event>, kills: watch::Sender<Option<u64>>) {
    loop {
        let event = events.recv().await;
        if let Ok(Event::Killed { took_ms }) = event {
            kills.send_replace(Some(took_ms));
        } else if event == Err(broadcast::error::RecvError::Closed) {
            return;
        }
    }
}

async fn serve<H: Host>(mut listener: Listener, shared: Arc<Shared<H>>) {
    loop {
        match listener.accept().await {
            Ok(Some((mut stream, pid))) => {
                let standing = shared.standing(pid);
                let slots = match standing {
                    Standing::Person => &shared.person,
                    Standing::OwnCommand => &shared.commands,
                };
                let Ok(slot) = Arc::clone(slots).try_acquire_owned() else {
                    let busy = Answer::refused(Refusal::Busy, "too many programs are connected; try again");
                    tokio::spawn(async move { send(&mut stream, &busy).await });
                    continue;
                };
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    if let Err(error) = talk(stream, standing, &shared).await {
                        tracing::debug!(%error, "a local client has gone");
                    }
                    drop(slot);
                });
            }
            Ok(None) => tracing::warn!("a program of another user tried the local socket; it was not heard"),
            Err(error) => {
                tracing::warn!(%error, "the local socket cannot accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one client until it leaves, goes wrong or says nothing.
async fn talk<H: Host>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    standing: Standing,
    shared: &Arc<Shared<H>>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let line = match timeout(REQUEST_PATIENCE, line::read(&mut stream, LONGEST_REQUEST)).await {
            Ok(line) => line?,
            Err(_) => return Ok(()),
        };
        let line = match line {
            Line::Whole(line) => line,
            Line::End => return Ok(()),
            Line::TooLong => {
                let long = format!("a request is at most {LONGEST_REQUEST} bytes long");
                return send(&mut stream, &Answer::refused(Refusal::BadRequest, long)).await;
            }
        };
        let request = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => request,
            Err(error) => {
                let bad = format!("not a request: {error}; do both programs have the same version?");
                send(&mut stream, &Answer::refused(Refusal::BadRequest, bad)).await?;
                continue;
            }
        };
        if standing == Standing::OwnCommand && !is_safe(&request) {
            tracing::warn!(?request, "a command of the agent's tried to steer deskhand; it was refused");
            send(&mut stream, &Answer::refused(Refusal::Forbidden, FORBIDDEN)).await?;
            continue;
        }
        let answer = match request {
            Request::Status => shared.ask(|host| async move { host.status() }).await.map(status),
            Request::Standing => Ok(Answer::Standing { person: standing == Standing::Person }),
            Request::Watch => return watch(&mut stream, shared).await,
            Request::Command(Command::Stop) => Ok(shared.stop().await),
            Request::Command(command) => shared.command(command).await,
        };
        send(&mut stream, &answer.unwrap_or_else(|refused| refused)).await?;
    }
}

const FORBIDDEN: &str = "only the person may do this, not a command that deskhand itself has started: use a terminal of \
                         your own or the app (a command may ask for status, stop, pause and disconnect)";

/// Whether a command of the agent's may ask for it: what shows the state, or makes things safer.
fn is_safe(request: &Request) -> bool {
    match request {
        Request::Status | Request::Standing => true,
        Request::Watch => false,
        Request::Command(command) => match command {
            Command::Stop | Command::Pause | Command::Disconnect | Command::EndSession { .. } => true,
            Command::Connect
            | Command::Resume { .. }
            | Command::RotateLog
            | Command::PruneLog { .. }
            | Command::ReloadConfig => false,
        },
    }
}

fn status(report: StatusReport) -> Answer {
    Answer::Status { report: Box::new(report) }
}

impl<H: Host> Shared<H> {
    fn standing(&self, pid: Option<u32>) -> Standing {
        match pid {
            Some(pid) if (self.is_command)(pid) => Standing::OwnCommand,
            pid => peer::standing(pid),
        }
    }

    /// Asks the executor on its own runtime, and gives up on it rather than wait with it.
    async fn ask<T, F>(&self, question: impl FnOnce(Arc<H>) -> F + Send + 'static) -> Result<T, Answer>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send,
    {
        let host = Arc::clone(&self.host);
        let asked = self.executor.spawn(async move { question(host).await });
        match timeout(HOST_PATIENCE, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Answer::refused(Refusal::NoAnswer, "deskhand is ending")),
            Err(_) => Err(Answer::refused(
                Refusal::NoAnswer,
                format!(
                    "deskhand has not answered for {} s; `deskhand stop` works all the same",
                    HOST_PATIENCE.as_secs()
                ),
            )),
        }
    }

    async fn command(&self, command: Command) -> Result<Answer, Answer> {
        let done = self.ask(|host| async move { host.command(command).await }).await?;
        Ok(match done {
            Ok(()) => Answer::Done { took_ms: None },
            Err(CommandFailed(message)) => Answer::refused(Refusal::Failed, message),
        })
    }

    async fn stop(&self) -> Answer {
        match self.stop.throw().await {
            Thrown::Finished(took_ms) => Answer::Done { took_ms: Some(took_ms) },
            Thrown::Returned => Answer::Done { took_ms: None },
            Thrown::Pending => Answer::refused(
                Refusal::NoAnswer,
                "the kill switch was thrown and has not reported its end: look whether the process is still there",
            ),
        }
    }
}

async fn watch<H: Host>(
    stream: &mut BufReader<impl AsyncRead + AsyncWrite + Unpin>,
    shared: &Arc<Shared<H>>,
) -> io::Result<()> {
    let Ok(_slot) = shared.watchers.try_acquire() else {
        return send(stream, &Answer::refused(Refusal::Busy, "too many programs are watching")).await;
    };
    // Subscribed first: what happens in between is told twice rather than never.
    let (mut events, report) = match shared.ask(|host| async move { (host.subscribe(), host.status()) }).await
    {
        Ok(first) => first,
        Err(refused) => return send(stream, &refused).await,
    };
    send(stream, &status(report)).await?;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // A watcher says nothing more; what comes is its end.
            _ = line::read(stream, LONGEST_REQUEST) => return Ok(()),
        };
        let answer = match event {
            Ok(event) => Answer::Event { event },
            Err(broadcast::error::RecvError::Lagged(events)) => Answer::Missed { events },
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        };
        send(stream, &answer).await?;
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), answer: &Answer) -> io::Result<()> {
    match timeout(WRITE_PATIENCE, line::write(stream, answer)).await {
        Ok(written) => written,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

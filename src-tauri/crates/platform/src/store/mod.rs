//! State in SQLite, on a thread of its own.
//!
//! Every call is one transaction: it is committed when the closure succeeds and rolled back when it fails, so a
//! multi-step change cannot be left half done. The thread takes calls in order and ends with the last [`Store`].

pub(crate) mod oauth;
pub(crate) mod sessions;
pub(crate) mod users;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::options::Database;

/// Calls that wait for the thread before a caller has to wait itself.
const QUEUE: usize = 64;

/// How long a platform that ends may take to let its database go.
const LET_GO: Duration = Duration::from_secs(2);

const SCHEMA: &str = include_str!("schema.sql");

/// Raised with every change of `schema.sql`.
const SCHEMA_VERSION: i64 = 1;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

enum Call {
    Run(Job),
    /// Close the database, then say so.
    Close(oneshot::Sender<()>),
}

/// What the database could not do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("database file: {0}")]
    Io(#[from] std::io::Error),
    #[error("the database {} cannot be opened: {source}", path.display())]
    Unusable { path: PathBuf, source: Box<StoreError> },
    #[error("the database {} is in use by another platform: end that one, or choose another file", path.display())]
    InUse { path: PathBuf },
    #[error("the database was written by a newer version (schema {0})")]
    Newer(i64),
    #[error("no random bytes from the operating system: {0}")]
    Random(#[from] getrandom::Error),
    #[error("a stored value cannot be read: {0}")]
    Corrupt(String),
    #[error("the database thread has ended")]
    Ended,
}

impl StoreError {
    /// The same, where it came of opening the file at `path`.
    fn of(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                Self::InUse { path }
            }
            other => Self::Unusable { path, source: Box::new(other) },
        }
    }
}

/// Handle to the database thread.
#[derive(Clone)]
pub(crate) struct Store {
    calls: mpsc::Sender<Call>,
}

impl Store {
    pub(crate) fn open(database: &Database) -> Result<Self, StoreError> {
        let mut connection = match database {
            Database::Memory => prepared(Connection::open_in_memory()?)?,
            Database::File(path) => open_file(path).map_err(|error| error.of(path))?,
        };
        let (calls, mut queue) = mpsc::channel::<Call>(QUEUE);
        std::thread::Builder::new().name("platform-store".to_owned()).spawn(move || {
            while let Some(call) = queue.blocking_recv() {
                match call {
                    Call::Run(job) => job(&mut connection),
                    Call::Close(closed) => {
                        drop(connection);
                        // Nobody listening is fine: it is closed.
                        let _ = closed.send(());
                        return;
                    }
                }
            }
        })?;
        Ok(Self { calls })
    }

    /// Closes the database, after the calls that wait already. Returns when its files are let go; later calls fail.
    pub(crate) async fn close(&self) {
        let (closed, wait) = oneshot::channel();
        if self.calls.send(Call::Close(closed)).await.is_ok() {
            // An error means that the thread has ended, and the database with it.
            let _ = wait.await;
        }
    }

    /// Runs `work` in one transaction. It runs to its end even when the caller goes away.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, wait) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Nobody listening is fine: the work counts, not the answer.
            let _ = answer.send(in_transaction(connection, work));
        });
        self.calls.send(Call::Run(job)).await.map_err(|_| StoreError::Ended)?;
        wait.await.map_err(|_| StoreError::Ended)?
    }
}

fn in_transaction<T, F>(connection: &mut Connection, work: F) -> Result<T, StoreError>
where
    F: FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
{
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = work(&transaction)?;
    transaction.commit()?;
    Ok(value)
}

fn open_file(path: &Path) -> Result<Connection, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path)?);
    let connection = Connection::open(path)?;
    connection.busy_timeout(LET_GO)?;
    // One platform at a time: what it knows of its machines is in its memory. The system lets the lock go with the process,
    // however that ends.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    prepared(connection)
}

fn prepared(mut connection: Connection) -> Result<Connection, StoreError> {
    connection.pragma_update(None, "foreign_keys", true)?;
    in_transaction(&mut connection, |db| {
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > SCHEMA_VERSION {
            return Err(StoreError::Newer(version));
        }
        db.execute_batch(SCHEMA)?;
        db.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        // What a crash left half made was never handed out.
        db.execute("DELETE FROM sessions WHERE ready = 0", [])?;
        Ok(())
    })?;
    Ok(connection)
}

/// Milliseconds since the epoch, as stored.
pub(crate) fn now_ms() -> i64 {
    (protocol::now() * 1000.0) as i64
}

/// `now` plus a duration, as stored.
pub(crate) fn after_ms(now: i64, duration: Duration) -> i64 {
    now.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_rolls_everything_back() {
        let store = Store::open(&Database::Memory).unwrap();
        let failed = store
            .run(|db| {
                db.execute("INSERT INTO users VALUES ('u', 'n', x'00', x'00', 1, 1, 0)", [])?;
                Err::<(), _>(StoreError::Corrupt("on purpose".to_owned()))
            })
            .await;
        assert!(matches!(failed, Err(StoreError::Corrupt(_))));
        let users: i64 =
            store.run(|db| Ok(db.query_row("SELECT count(*) FROM users", [], |r| r.get(0))?)).await.unwrap();
        assert_eq!(users, 0);
    }

    #[tokio::test]
    async fn a_database_is_one_platforms_at_a_time_and_faults_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("platform.db");
        let database = Database::File(path.clone());
        let first = Store::open(&database).unwrap();
        assert!(matches!(Store::open(&database), Err(StoreError::InUse { path: named }) if named == path));
        first.close().await;
        Store::open(&database).unwrap().close().await;

        let not_one = folder.path().join("letter.txt");
        std::fs::write(&not_one, "Dear Ann, this is no database. ".repeat(40)).unwrap();
        for unusable in [not_one, folder.path().join("none/platform.db")] {
            let error = Store::open(&Database::File(unusable.clone())).err().unwrap();
            assert!(error.to_string().contains(&unusable.display().to_string()), "{error}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_database_file_is_its_owners_alone_and_survives_a_restart() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("platform.db");
        for expected in [0, 1] {
            let store = Store::open(&Database::File(path.clone())).unwrap();
            let before: i64 = store
                .run(|db| {
                    let n = db.query_row("SELECT count(*) FROM users", [], |r| r.get(0))?;
                    db.execute("INSERT OR IGNORE INTO users VALUES ('u', 'n', x'00', x'00', 1, 1, 0)", [])?;
                    Ok(n)
                })
                .await
                .unwrap();
            assert_eq!(before, expected);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn what_a_crash_left_half_made_is_gone_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::File(folder.path().join("platform.db"));
        let insert = "INSERT INTO users VALUES ('u', 'n', x'00', x'00', 1, 1, 0);
                      INSERT INTO sessions VALUES ('half', 'u', 0, 0, 'm', '/r', 'f', 1, 'g');
                      INSERT INTO sessions VALUES ('whole', 'u', 0, 1, 'm', '/r', 'f', 1, 'g');";
        let store = Store::open(&database).unwrap();
        store.run(move |db| Ok(db.execute_batch(insert)?)).await.unwrap();
        drop(store);
        let store = Store::open(&database).unwrap();
        let left: String = store
            .run(|db| Ok(db.query_row("SELECT group_concat(id) FROM sessions", [], |r| r.get(0))?))
            .await
            .unwrap();
        assert_eq!(left, "whole");
    }
}

//! The OS keychain, through a thread of its own: a locked keychain may ask the user, or a broken one never answer,
//! and neither may hang the caller.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use keyring::{Entry, Error};
use keyring_core::CredentialStore;
use zeroize::Zeroizing;

use crate::parts::{self, Parts, Text};
use crate::store::Store;
use crate::{SecretBytes, VaultError};

/// How long a call waits for the keychain: time to type a password into its prompt, and an end where nobody does.
pub const KEYCHAIN_PATIENCE: Duration = Duration::from_secs(30);

/// The longest text of one item. Windows: CRED_MAX_CREDENTIAL_BLOB_SIZE, 5 · 512 bytes. The other keychains name
/// no limit; this one keeps an item to one message.
const LONGEST: usize = if cfg!(windows) { 2560 } else { 1 << 20 };

type Bytes = Zeroizing<Vec<u8>>;
type Reply = Result<Option<Bytes>, VaultError>;

enum Ask {
    Get,
    Set(Bytes),
    Delete,
}

struct Job {
    name: String,
    ask: Ask,
    reply: Sender<Reply>,
}

pub(crate) struct Keychain {
    jobs: Sender<Job>,
    /// The answer an earlier call gave up on. While it is out, the thread is stuck and calls fail at once.
    overdue: Mutex<Option<Receiver<Reply>>>,
    patience: Duration,
    longest: usize,
}

impl Keychain {
    /// Starts the thread; the keychain itself is first spoken to by the first call.
    pub(crate) fn new(service: &str) -> Result<Self, VaultError> {
        Self::with_limits(service, KEYCHAIN_PATIENCE, LONGEST)
    }

    pub(crate) fn with_limits(service: &str, patience: Duration, longest: usize) -> Result<Self, VaultError> {
        let (jobs, queue) = mpsc::channel();
        let service = service.to_owned();
        thread::Builder::new()
            .name("keychain".to_owned())
            .spawn(move || serve(&service, &queue))
            .map_err(|e| VaultError::Unavailable(e.to_string()))?;
        Ok(Self { jobs, overdue: Mutex::new(None), patience, longest })
    }

    fn call(&self, name: &str, ask: Ask) -> Reply {
        let late = || VaultError::TimedOut(self.patience);
        let gone = || VaultError::Unavailable("its thread ended".to_owned());
        let mut overdue = self.overdue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(TryRecvError::Empty)) = overdue.as_ref().map(Receiver::try_recv) {
            return Err(late());
        }
        *overdue = None;
        let (reply, answer) = mpsc::channel();
        self.jobs.send(Job { name: name.to_owned(), ask, reply }).map_err(|_| gone())?;
        match answer.recv_timeout(self.patience) {
            Ok(reply) => reply,
            Err(RecvTimeoutError::Timeout) => {
                *overdue = Some(answer);
                Err(late())
            }
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Text>, VaultError> {
        self.call(name, Ask::Get)?.map(|text| parts::parse(name, &text)).transpose()
    }

    fn join(&self, name: &str, list: &Parts) -> Result<Option<Bytes>, VaultError> {
        let mut found = Vec::new();
        for part in list.names(name) {
            match self.call(&part, Ask::Get)? {
                Some(text) => found.push(text),
                None => return Ok(None),
            }
        }
        Ok(list.join(&found))
    }

    fn parts_of(&self, name: &str) -> Result<Option<Parts>, VaultError> {
        Ok(match self.read(name)? {
            Some(Text::Parts(list)) => Some(list),
            Some(Text::Whole(_)) | None => None,
        })
    }

    fn drop_parts(&self, name: &str, list: &Parts) -> Result<(), VaultError> {
        list.names(name).try_for_each(|part| self.call(&part, Ask::Delete).map(drop))
    }

    fn store_one(&self, name: &str, value: &[u8]) -> Result<(), VaultError> {
        // What cannot be read is replaced, but a keychain that fails is an error.
        let old = match self.parts_of(name) {
            Err(VaultError::Damaged { .. }) => None,
            other => other?,
        };
        for (item, text) in parts::split(name, value, self.longest, old.as_ref()) {
            self.call(&item, Ask::Set(text))?;
        }
        old.map_or(Ok(()), |old| self.drop_parts(name, &old))
    }
}

impl Store for Keychain {
    fn load(&self, name: &str) -> Result<Option<SecretBytes>, VaultError> {
        let secret = |bytes: Bytes| Some(SecretBytes::copied(&bytes));
        // Twice: another process may replace the parts between our reading of the list and of the parts.
        let mut before = None;
        for _ in 0..2 {
            match self.read(name)? {
                None => return Ok(None),
                Some(Text::Whole(value)) => return Ok(secret(value)),
                Some(Text::Parts(list)) => match self.join(name, &list)? {
                    Some(value) => return Ok(secret(value)),
                    None if before.as_ref() == Some(&list) => break,
                    None => before = Some(list),
                },
            }
        }
        Err(VaultError::damaged(format!("the keychain item {name}"), "a part of it is missing or changed"))
    }

    fn store(&self, items: &[(&str, &[u8])]) -> Result<(), VaultError> {
        items.iter().try_for_each(|(name, value)| self.store_one(name, value))
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        let old = self.parts_of(name);
        self.call(name, Ask::Delete)?;
        match old {
            Ok(Some(list)) => self.drop_parts(name, &list),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

/// The thread. It ends when the vault is dropped.
fn serve(service: &str, queue: &Receiver<Job>) {
    let mut connection = None;
    while let Ok(Job { name, ask, reply }) = queue.recv() {
        let answer = answer(&mut connection, service, &name, &ask);
        // Whoever asked may have given up.
        let _ = reply.send(answer);
    }
}

/// A keychain that was restarted forgot our connection, so a failure is tried once more over a new one; each ask can
/// be repeated without harm.
fn answer(connection: &mut Option<Arc<CredentialStore>>, service: &str, name: &str, ask: &Ask) -> Reply {
    let reused = connection.is_some();
    let unavailable = |e: Error| VaultError::Unavailable(e.to_string());
    let store = match connection {
        Some(store) => store,
        None => connection.insert(connect().map_err(unavailable)?),
    };
    match perform(store.as_ref(), service, name, ask) {
        Ok(found) => Ok(found),
        Err(Error::NoStorageAccess(e)) => Err(VaultError::Locked(e.to_string())),
        Err(Error::PlatformFailure(e)) => {
            *connection = None;
            if reused {
                answer(connection, service, name, ask)
            } else {
                Err(VaultError::Failed(e.to_string()))
            }
        }
        Err(Error::BadEncoding(_) | Error::BadDataFormat(..)) => {
            Err(VaultError::damaged(format!("the keychain item {name}"), "not what this program writes"))
        }
        // Not its Display: that would print the items.
        Err(Error::Ambiguous(_)) => Err(VaultError::damaged(
            format!("the keychain item {name}"),
            "there is more than one of that name",
        )),
        // The library's enum, open to additions.
        Err(other) => Err(VaultError::Failed(other.to_string())),
    }
}

fn perform(store: &CredentialStore, service: &str, name: &str, ask: &Ask) -> Result<Option<Bytes>, Error> {
    let entry = Entry { inner: store.build(service, name, modifiers().as_ref())? };
    match ask {
        Ask::Get => match entry.get_secret() {
            Ok(text) => Ok(Some(Zeroizing::new(text))),
            Err(Error::NoEntry) => Ok(None),
            Err(e) => Err(e),
        },
        Ask::Set(text) => entry.set_secret(text).map(|()| None),
        Ask::Delete => match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(None),
            Err(e) => Err(e),
        },
    }
}

type Modifiers = Option<std::collections::HashMap<&'static str, &'static str>>;

/// The store's own default would let a domain account carry the keys of this machine to others.
#[cfg(windows)]
fn modifiers() -> Modifiers {
    Some([("persistence", "Local")].into())
}

#[cfg(not(windows))]
fn modifiers() -> Modifiers {
    None
}

// The store is opened here, and not by `Entry::new`: that opens one for the whole process, once, and a keychain that was not
// there at that moment, or was restarted since, would stay away until the next start.
#[cfg(windows)]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(windows_native_keyring_store::Store::new()?)
}

#[cfg(target_os = "macos")]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(all(unix, not(target_os = "macos")))]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

//! The start of the command itself: `posix_spawn`, which copies no memory.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;

use super::words::Words;

/// Every signal there is.
pub(crate) fn all_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the whole set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn no_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the whole set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Starts the command in a process group of its own, with every signal as a fresh login has it (none blocked,
/// none ignored), an empty stdin, and the two pipes. On Linux it starts in our own working folder; on macOS
/// in `cwd`, suspended, and with no handle but those three, whatever flags others have.
pub(crate) fn spawn(
    words: &Words,
    stdout: &OwnedFd,
    stderr: &OwnedFd,
    #[cfg(target_os = "macos")] cwd: &OwnedFd,
) -> Result<i32, Errno> {
    let attributes = Attributes::new()?;
    let mut actions = Actions::new()?;
    actions.open_null(0)?;
    actions.duplicate(stdout, 1)?;
    actions.duplicate(stderr, 2)?;
    #[cfg(target_os = "macos")]
    actions.enter(cwd)?;
    let argv = pointers(&words.argv);
    let env = pointers(&words.env);
    let mut pid = 0;
    // SAFETY: the program and each word end with a NUL, both lists end with a null pointer, and all of it,
    // like the attributes and actions, outlives the call; `posix_spawn` changes none of it.
    check(unsafe {
        libc::posix_spawn(
            &mut pid,
            words.program.as_ptr(),
            &actions.0,
            &attributes.0,
            argv.as_ptr(),
            env.as_ptr(),
        )
    })?;
    Ok(pid)
}

fn pointers(words: &[CString]) -> Vec<*mut c_char> {
    words.iter().map(|word| word.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// The posix_spawn family returns its errno.
fn check(code: c_int) -> Result<(), Errno> {
    match code {
        0 => Ok(()),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> Result<Attributes, Errno> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `init` initialises the object it is given.
        let mut attributes = unsafe {
            check(libc::posix_spawnattr_init(raw.as_mut_ptr()))?;
            Attributes(raw.assume_init())
        };
        let flags = libc::POSIX_SPAWN_SETPGROUP | libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        #[cfg(target_os = "macos")]
        let flags = flags | libc::POSIX_SPAWN_CLOEXEC_DEFAULT | libc::POSIX_SPAWN_START_SUSPENDED;
        // SAFETY: the object is initialised, and so are the sets.
        unsafe {
            check(libc::posix_spawnattr_setflags(&mut attributes.0, flags as c_short))?;
            check(libc::posix_spawnattr_setpgroup(&mut attributes.0, 0))?;
            check(libc::posix_spawnattr_setsigdefault(&mut attributes.0, &all_signals()))?;
            check(libc::posix_spawnattr_setsigmask(&mut attributes.0, &no_signals()))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> Result<Actions, Errno> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `init` initialises the object it is given.
        unsafe {
            check(libc::posix_spawn_file_actions_init(raw.as_mut_ptr()))?;
            Ok(Actions(raw.assume_init()))
        }
    }

    fn open_null(&mut self, target: c_int) -> Result<(), Errno> {
        const NULL: &CStr = c"/dev/null";
        // SAFETY: the object is initialised; the path ends with a NUL and is copied.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(&mut self.0, target, NULL.as_ptr(), libc::O_RDONLY, 0)
        })
    }

    fn duplicate(&mut self, fd: &OwnedFd, target: c_int) -> Result<(), Errno> {
        // SAFETY: the object is initialised; the handle is open until after the spawn.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, fd.as_raw_fd(), target) })
    }
}

#[cfg(target_os = "macos")]
impl Actions {
    fn enter(&mut self, folder: &OwnedFd) -> Result<(), Errno> {
        unsafe extern "C" {
            /// Since macOS 10.15.
            fn posix_spawn_file_actions_addfchdir_np(
                actions: *mut libc::posix_spawn_file_actions_t,
                fd: c_int,
            ) -> c_int;
        }
        // SAFETY: the object is initialised; the handle is open until after the spawn.
        check(unsafe { posix_spawn_file_actions_addfchdir_np(&mut self.0, folder.as_raw_fd()) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

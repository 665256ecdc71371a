//! A named pipe.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr;

use tokio::net::windows::named_pipe::{
    ClientOptions, NamedPipeClient, NamedPipeServer, PipeMode, ServerOptions,
};
use windows_sys::Win32::Foundation::{ERROR_PIPE_BUSY, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    GetTokenInformation, PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Pipes::{GetNamedPipeClientProcessId, GetNamedPipeServerProcessId};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_TERMINATE,
    TerminateProcess,
};

pub(super) type ServerStream = NamedPipeServer;
pub(super) type ClientStream = NamedPipeClient;

/// A pipe of a name that nobody can know beforehand. It is gone with its last handle.
pub(super) struct Listener {
    name: String,
    descriptor: Descriptor,
    next: NamedPipeServer,
}

impl Listener {
    /// Makes the pipe. Needs a runtime.
    pub(super) fn bind(_runtime_dir: &Path) -> io::Result<Self> {
        let name = format!(r"\\.\pipe\deskhand-{}", uuid::Uuid::new_v4().simple());
        let descriptor = Descriptor::for_the_user()?;
        let next = instance(&name, &descriptor, true)?;
        Ok(Self { name, descriptor, next })
    }

    /// What a client connects to.
    pub(super) fn address(&self) -> io::Result<String> {
        Ok(self.name.clone())
    }

    /// The next peer. The access list has kept everybody else out.
    pub(super) async fn accept(&mut self) -> io::Result<Option<(ServerStream, Option<u32>)>> {
        let connected = self.next.connect().await;
        // The next one before this one is served, so that there always is one to connect to.
        let next = instance(&self.name, &self.descriptor, false)?;
        let stream = std::mem::replace(&mut self.next, next);
        connected?;
        let mut pid = 0;
        // SAFETY: the pipe is open and `pid` is writable.
        let known = unsafe { GetNamedPipeClientProcessId(stream.as_raw_handle(), &raw mut pid) } != 0;
        Ok(Some((stream, known.then_some(pid))))
    }
}

fn instance(name: &str, descriptor: &Descriptor, first: bool) -> io::Result<NamedPipeServer> {
    let mut attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    };
    let mut options = ServerOptions::new();
    options.first_pipe_instance(first).reject_remote_clients(true).pipe_mode(PipeMode::Byte);
    // SAFETY: the attributes are whole, and outlive the call as does the descriptor they point to.
    unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast::<c_void>()) }
}

/// Connects to a server of the same user; nobody else's is believed.
///
/// Beside it the process that made the pipe.
pub(super) async fn connect(address: &str) -> io::Result<(ClientStream, Option<u32>)> {
    let stream = loop {
        match ClientOptions::new().open(address) {
            // All instances are taken for the moment; the caller's timeout bounds this.
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY.cast_signed()) => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            other => break other?,
        }
    };
    let mut pid = 0;
    // SAFETY: the pipe is open and `pid` is writable.
    if unsafe { GetNamedPipeServerProcessId(stream.as_raw_handle(), &raw mut pid) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let server = process(pid)?;
    if user_of(&server)? != user_of_this_process()? {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the pipe is another user's"));
    }
    Ok((stream, Some(pid)))
}

/// Ends a process that does not listen any more. `is_it` is asked once the process cannot be taken for a later one of its
/// number any more; when it says no, nothing is done. Returns whether it was struck.
pub(super) fn kill(pid: u32, is_it: impl Fn() -> bool) -> io::Result<bool> {
    let process = open(pid, PROCESS_TERMINATE)?;
    if !is_it() {
        return Ok(false);
    }
    // SAFETY: the handle is open, with the right to do this.
    if unsafe { TerminateProcess(process.as_raw_handle(), 1) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(true)
}

fn process(pid: u32) -> io::Result<OwnedHandle> {
    open(pid, PROCESS_QUERY_LIMITED_INFORMATION)
}

fn open(pid: u32, rights: u32) -> io::Result<OwnedHandle> {
    // SAFETY: takes no pointers; the handle it answers is ours to close.
    unsafe {
        let raw = OpenProcess(rights, 0, pid);
        if raw.is_null() { Err(io::Error::last_os_error()) } else { Ok(OwnedHandle::from_raw_handle(raw)) }
    }
}

/// A security descriptor that lets one user in and nobody else.
struct Descriptor(PSECURITY_DESCRIPTOR);

// SAFETY: it is a block of memory that is only read until it is freed.
unsafe impl Send for Descriptor {}

impl Descriptor {
    fn for_the_user() -> io::Result<Self> {
        // D: access list, P: nothing inherited, one entry: allow generic all to the user.
        let text = format!("D:P(A;;GA;;;{})", user_of_this_process()?);
        let text: Vec<u16> = text.encode_utf16().chain([0]).collect();
        let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
        // SAFETY: the text ends in zero; the descriptor is written to a place of ours, and its size is not asked for.
        let made = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut descriptor,
                ptr::null_mut(),
            )
        };
        if made == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(descriptor)) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by the OS with LocalAlloc, and freed once.
        unsafe {
            LocalFree(self.0);
        }
    }
}

fn user_of_this_process() -> io::Result<String> {
    // SAFETY: a pseudo handle, valid for ever.
    user_of_raw(unsafe { GetCurrentProcess() })
}

fn user_of(process: &OwnedHandle) -> io::Result<String> {
    user_of_raw(process.as_raw_handle())
}

/// The SID of the user that a process runs as, as text.
fn user_of_raw(process: *mut c_void) -> io::Result<String> {
    // SAFETY: the process handle is open; the token handle is ours to close.
    let token = unsafe {
        let mut raw = ptr::null_mut();
        if OpenProcessToken(process, TOKEN_QUERY, &raw mut raw) == 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedHandle::from_raw_handle(raw)
    };
    // TOKEN_USER and the SID it points to, 68 bytes at most, in memory that is aligned for both.
    let mut room = [0u64; 32];
    let mut used = 0;
    let size = size_of_val(&room) as u32;
    // SAFETY: `room` is writable for `size` bytes.
    let known = unsafe {
        GetTokenInformation(token.as_raw_handle(), TokenUser, room.as_mut_ptr().cast(), size, &raw mut used)
    };
    if known == 0 {
        return Err(io::Error::last_os_error());
    }
    let mut text = ptr::null_mut();
    // SAFETY: the call above has filled in a TOKEN_USER, whose SID lies in `room` too.
    let converted =
        unsafe { ConvertSidToStringSidW((*room.as_ptr().cast::<TOKEN_USER>()).User.Sid, &raw mut text) };
    if converted == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the text ends in zero and is freed once, after it was copied.
    unsafe {
        let length = (0..).take_while(|&at| *text.add(at) != 0).count();
        let sid = String::from_utf16_lossy(std::slice::from_raw_parts(text, length));
        LocalFree(text.cast());
        Ok(sid)
    }
}

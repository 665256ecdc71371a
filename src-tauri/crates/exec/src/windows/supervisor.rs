//! The supervisor's side: it owns the hidden console of the tree, whose code page it sets, and to which it
//! alone can send CTRL_BREAK.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, Stdio, exit};

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GenerateConsoleCtrlEvent, SetConsoleCP, SetConsoleCtrlHandler,
    SetConsoleOutputCP,
};
use windows_sys::core::BOOL;

use super::handles::{is_signalled, set_inheritable, wait};
use super::order::{ARGUMENT, Order, Report};

/// Code page identifiers, winnls.h.
const UTF8: u32 = 65001;

/// Whether this process was started to be a supervisor.
pub(crate) fn is_asked() -> bool {
    env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// Supervises and exits.
pub(crate) fn run() -> ! {
    exit(i32::from(supervise().is_err()))
}

fn supervise() -> io::Result<()> {
    let (report, stop) = (inherited(2)?, inherited(3)?);
    // What comes next inherits every handle that can be.
    set_inheritable(&report, false)?;
    set_inheritable(&stop, false)?;
    let report = File::from(report);
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let order = Order::decode(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    // SAFETY: the numbers are those of a code page and of no handle; the handler is a function for the whole
    // life of the process. A console that refuses leaves the command with the code page of the system.
    unsafe {
        SetConsoleCP(UTF8);
        SetConsoleOutputCP(UTF8);
        SetConsoleCtrlHandler(Some(ignore), 1);
    }
    match start(order) {
        Ok(command) => {
            Report::Started(command.id()).send(&report);
            attend(command, &report, &stop)
        }
        Err(error) => {
            let unsafe_argument =
                error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none();
            let code = error.raw_os_error().unwrap_or_default().cast_unsigned();
            (if unsafe_argument { Report::Unsafe } else { Report::Failed(code) }).send(&report);
            Ok(())
        }
    }
}

/// The handle whose number is an argument.
fn inherited(argument: usize) -> io::Result<OwnedHandle> {
    let number = env::args_os().nth(argument).and_then(|text: OsString| text.to_str()?.parse::<usize>().ok());
    let number = number.filter(|number| *number != 0).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: we were given the handle for ourselves by number, and take it once. A wrong number, from
    // somebody who started us by hand, fails at its first use.
    Ok(unsafe { OwnedHandle::from_raw_handle(number as RawHandle) })
}

/// In our console, our folder and our environment, which are the command's; with our two pipes and an empty
/// stdin.
fn start(order: Order) -> io::Result<Child> {
    let mut command = Command::new(order.program);
    command.args(order.arguments).stdin(Stdio::null());
    if let Some(verbatim) = order.verbatim {
        command.raw_arg(verbatim);
    }
    command.spawn()
}

fn attend(mut command: Child, report: &File, stop: &OwnedHandle) -> io::Result<()> {
    let both = [command.as_raw_handle(), stop.as_raw_handle()];
    wait(&both, None);
    if !is_signalled(&command) {
        // SAFETY: no memory is involved; group 0 is all that share this console.
        unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, 0) };
    }
    let status = command.wait()?;
    Report::Exited(status.code().unwrap_or(-1).cast_unsigned()).send(report);
    Ok(())
}

/// The supervisor stays for what the others do about it.
unsafe extern "system" fn ignore(event: u32) -> BOOL {
    BOOL::from(event == CTRL_BREAK_EVENT || event == CTRL_C_EVENT)
}

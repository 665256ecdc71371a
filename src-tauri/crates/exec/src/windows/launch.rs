//! Starting a supervisor in a job, and the command on it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::mem::{size_of, size_of_val};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::Ordering;

use windows_sys::Win32::Foundation::{CloseHandle, HANDLE};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_UNICODE_ENVIRONMENT, CreateProcessW,
    DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, InitializeProcThreadAttributeList,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROCESS_INFORMATION, STARTF_USESTDHANDLES, STARTUPINFOEXW,
    UpdateProcThreadAttribute,
};

use super::Launch;
use super::attend::Attended;
use super::handles::{check, pipe, set_inheritable};
use super::order::{ARGUMENT, Order, Report};
use crate::error::ExecError;
use crate::host::Entry;
use crate::supervisor;

/// What a pipe holds: the writer seldom waits for us.
const PIPE_SIZE: u32 = 256 << 10;

/// What `CreateProcessW` takes as a command line, winbase.h.
const LONGEST_COMMAND: usize = 32_767;

/// The supervisor's ends of its pipes.
struct Ends {
    order: File,
    stdout: File,
    stderr: File,
    report: File,
}

/// Runs the command. On an error the caller kills the job.
pub(super) fn launch(entry: &Entry, launch: &Launch) -> Result<Attended, ExecError> {
    let order = order(launch)?;
    let (order_end, mut order_pipe) = pipe(PIPE_SIZE)?;
    let (stdout, stdout_end) = pipe(PIPE_SIZE)?;
    let (stderr, stderr_end) = pipe(PIPE_SIZE)?;
    let (report, report_end) = pipe(0)?;
    let ends = Ends { order: order_end, stdout: stdout_end, stderr: stderr_end, report: report_end };
    let supervisor = start_supervisor(entry, launch, ends)?;
    entry.tree.job.assign(&supervisor)?;
    // A kill that came before this line found the job empty, and left the flag; one that comes after it finds
    // the supervisor. Only now is there an order, so what was to die never begins.
    if entry.is_cancelled() {
        return Err(ExecError::Stopped);
    }
    order_pipe.write_all(&order.encode())?;
    drop(order_pipe);
    match Report::receive(&report)? {
        Some(Report::Started(pid)) => {
            entry.pid.store(pid, Ordering::SeqCst);
            Ok(Attended::new(supervisor, report, stdout, stderr)?)
        }
        Some(Report::Failed(error)) => Err(failure(launch, error)),
        Some(Report::Unsafe) => Err(ExecError::BadSpec("an argument cannot be given to a batch file safely")),
        Some(Report::Exited(_)) | None if entry.is_cancelled() => Err(ExecError::Stopped),
        Some(Report::Exited(_)) | None => Err(io::Error::other("the supervisor of the command ended").into()),
    }
}

fn order(launch: &Launch) -> Result<Order, ExecError> {
    let invocation = &launch.invocation;
    let order = Order {
        program: invocation.program.clone().into_os_string(),
        arguments: invocation.argv.iter().skip(1).cloned().collect(),
        verbatim: invocation.verbatim.as_ref().map(OsString::from),
    };
    let words = order.arguments.iter().chain(&order.verbatim).chain([&order.program]);
    if words.map(|word| word.encode_wide().count() + 1).sum::<usize>() > LONGEST_COMMAND {
        return Err(ExecError::BadSpec("the command is longer than Windows takes"));
    }
    Ok(order)
}

fn failure(launch: &Launch, error: u32) -> ExecError {
    /// winerror.h
    const FILE_NOT_FOUND: u32 = 2;
    const PATH_NOT_FOUND: u32 = 3;
    const ACCESS_DENIED: u32 = 5;
    const BAD_FORMAT: u32 = 11;
    const BAD_EXE_FORMAT: u32 = 193;
    const FILENAME_TOO_LONG: u32 = 206;
    let program = launch.invocation.argv.first();
    let program = program.map_or_else(String::new, |program| program.to_string_lossy().into_owned());
    match error {
        FILE_NOT_FOUND | PATH_NOT_FOUND => ExecError::ProgramNotFound { program },
        ACCESS_DENIED | BAD_FORMAT | BAD_EXE_FORMAT => ExecError::ProgramNotExecutable { program },
        FILENAME_TOO_LONG => ExecError::BadSpec("the command is longer than Windows takes"),
        error => ExecError::Io(io::Error::from_raw_os_error(error.cast_signed())),
    }
}

/// Starts the supervisor with a hidden console of its own, in the command's folder and environment, with
/// the listed handles and no others.
fn start_supervisor(entry: &Entry, launch: &Launch, ends: Ends) -> Result<OwnedHandle, ExecError> {
    let stop = &entry.tree.stop;
    let handles: [RawHandle; 5] = [
        ends.order.as_raw_handle(),
        ends.stdout.as_raw_handle(),
        ends.stderr.as_raw_handle(),
        ends.report.as_raw_handle(),
        stop.as_raw_handle(),
    ];
    let executable = match supervisor::program() {
        Some(program) => program.path.clone(),
        None => env::current_exe()?,
    };
    let line = format!(
        "deskhand {ARGUMENT} {} {}",
        ends.report.as_raw_handle() as usize,
        stop.as_raw_handle() as usize
    );
    let (executable, mut line) = (wide(executable.as_os_str()), wide(OsStr::new(&line)));
    let environment = environment_block(&launch.env);
    let folder = wide(plain(launch.cwd.path()).as_os_str());
    let mut list = HandleList::new(&handles)?;
    let mut startup = STARTUPINFOEXW::default();
    startup.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    startup.StartupInfo.hStdInput = ends.order.as_raw_handle();
    startup.StartupInfo.hStdOutput = ends.stdout.as_raw_handle();
    startup.StartupInfo.hStdError = ends.stderr.as_raw_handle();
    startup.lpAttributeList = list.0.as_mut_ptr().cast();
    let flags = CREATE_NO_WINDOW
        | CREATE_NEW_PROCESS_GROUP
        | CREATE_UNICODE_ENVIRONMENT
        | EXTENDED_STARTUPINFO_PRESENT;
    let mut process = PROCESS_INFORMATION::default();
    set_all_inheritable(&ends, entry, true)?;
    // SAFETY: every text ends with a NUL and the environment with two, the handles and their list are open
    // and outlive the call, and the start-up structure is the extended one, as its size and the flag say.
    let created = check(unsafe {
        CreateProcessW(
            executable.as_ptr(),
            line.as_mut_ptr(),
            ptr::null(),
            ptr::null(),
            1,
            flags,
            environment.as_ptr().cast(),
            folder.as_ptr(),
            &startup.StartupInfo,
            &mut process,
        )
    });
    set_all_inheritable(&ends, entry, false)?;
    if let Err(error) = created {
        return Err(match error.raw_os_error() {
            // ERROR_DIRECTORY
            Some(267) => ExecError::CwdUnavailable { path: launch.cwd.path().to_owned() },
            _ => error.into(),
        });
    }
    // SAFETY: both handles are new, valid, and nobody else's.
    unsafe {
        CloseHandle(process.hThread);
        Ok(OwnedHandle::from_raw_handle(process.hProcess))
    }
}

/// Inheritable only for the moment of the start, lest another start of this process hands them on.
fn set_all_inheritable(ends: &Ends, entry: &Entry, inheritable: bool) -> io::Result<()> {
    for file in [&ends.order, &ends.stdout, &ends.stderr, &ends.report] {
        set_inheritable(file, inheritable)?;
    }
    set_inheritable(&entry.tree.stop, inheritable)
}

/// A PROC_THREAD_ATTRIBUTE_LIST with the handles to inherit. It keeps a pointer to them.
struct HandleList<'a>(Vec<usize>, std::marker::PhantomData<&'a [RawHandle]>);

impl<'a> HandleList<'a> {
    fn new(handles: &'a [RawHandle]) -> io::Result<HandleList<'a>> {
        let mut size = 0;
        // SAFETY: without a list the call only answers the size, as an error.
        unsafe { InitializeProcThreadAttributeList(ptr::null_mut(), 1, 0, &mut size) };
        // In words of a pointer's alignment.
        let mut list = vec![0; size.div_ceil(size_of::<usize>())];
        // SAFETY: the list is as long as the call has just said.
        check(unsafe { InitializeProcThreadAttributeList(list.as_mut_ptr().cast(), 1, 0, &mut size) })?;
        let mut list = HandleList(list, std::marker::PhantomData);
        // SAFETY: the list is initialised; the handles live as long as it does.
        check(unsafe {
            UpdateProcThreadAttribute(
                list.0.as_mut_ptr().cast(),
                0,
                PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize,
                handles.as_ptr().cast::<HANDLE>().cast(),
                size_of_val(handles),
                ptr::null_mut(),
                ptr::null(),
            )
        })?;
        Ok(list)
    }
}

impl Drop for HandleList<'_> {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, deleted once.
        unsafe { DeleteProcThreadAttributeList(self.0.as_mut_ptr().cast()) };
    }
}

fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().chain([0]).collect()
}

/// Sorted by name whatever the case, as the OS wants it; each ends with a NUL, and the whole with another.
fn environment_block(env: &[(OsString, OsString)]) -> Vec<u16> {
    let mut sorted: Vec<_> = env.iter().collect();
    sorted.sort_by_key(|(name, _)| name.to_ascii_uppercase());
    let mut block = Vec::new();
    for (name, value) in sorted {
        block.extend(name.encode_wide());
        block.push(u16::from(b'='));
        block.extend(value.encode_wide());
        block.push(0);
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    block
}

/// A canonical path starts with `\\?\`, which cmd.exe and many programs do not take for a working folder.
fn plain(path: &Path) -> PathBuf {
    let Some(text) = path.to_str() else { return path.to_owned() };
    match text.strip_prefix(r"\\?\") {
        Some(rest) if rest.as_bytes().get(1) == Some(&b':') => PathBuf::from(rest),
        Some(rest) => match rest.strip_prefix(r"UNC\") {
            Some(share) => PathBuf::from(format!(r"\\{share}")),
            None => path.to_owned(),
        },
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_block_is_sorted_and_ends_twice() {
        let env = [("b", "2"), ("A", "1")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(environment_block(&env), "A=1\0b=2\0\0".encode_utf16().collect::<Vec<_>>());
        assert_eq!(environment_block(&[]), [0, 0]);
    }

    #[test]
    fn verbatim_prefixes_are_taken_off() {
        for (given, wanted) in [
            (r"\\?\C:\work", r"C:\work"),
            (r"C:\work", r"C:\work"),
            (r"\\?\UNC\host\share", r"\\host\share"),
            (r"\\?\Volume{1}\x", r"\\?\Volume{1}\x"),
        ] {
            assert_eq!(plain(Path::new(given)), Path::new(wanted));
        }
    }
}

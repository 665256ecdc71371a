//! The environment block of this process: the OS backend that can wipe a variable from it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

#[cfg(not(target_os = "macos"))]
fn block() -> *const *mut c_char {
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    // SAFETY: `environ` is the C library's own, always valid to read; the caller is alone in the process.
    unsafe { environ }
}

#[cfg(target_os = "macos")]
fn block() -> *const *mut c_char {
    // SAFETY: `_NSGetEnviron` returns the address of the C library's `environ`; the caller is alone in the process.
    unsafe { *libc::_NSGetEnviron() as *const *mut c_char }
}

/// Overwrites the value of every entry called `name`, then removes them, so that neither a child nor
/// `/proc/<pid>/environ` (which shows the block the process was started with) has it.
///
/// No other thread may be using the environment: call it before any is started.
pub(crate) fn wipe(name: &str) {
    let mut entry = block();
    // SAFETY: the block is an array of NUL-terminated strings that ends in a null pointer, and no other thread runs.
    // Only bytes of an entry's value are written, up to its terminator, in memory that was made writable for it.
    unsafe {
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            let length = text.len();
            if text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&b'=') {
                for offset in name.len() + 1..length {
                    // Volatile: the compiler must not drop a write that nobody reads.
                    (*entry).add(offset).write_volatile(0);
                }
            }
            entry = entry.add(1);
        }
        std::env::remove_var(name);
    }
}

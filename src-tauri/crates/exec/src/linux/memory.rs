//! See `crate::memory`.

use std::ffi::{c_int, c_void};

/// Blocks from this size on, in bytes, are mapped each by itself, and grow without being copied: answers about as long as a
/// frame may be, which is 16 MiB and is what truncated output comes to, not those of a file of usual size.
#[cfg(target_env = "gnu")]
const MAPPED: c_int = 12 << 20;

/// So much may lie free at the end of the heap, in bytes: more than a request makes free.
#[cfg(target_env = "gnu")]
const KEPT: c_int = 128 << 20;

#[cfg(target_env = "gnu")]
pub(crate) fn keep_until_given_back() {
    for (what, value) in
        [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, MAPPED), (libc::M_TRIM_THRESHOLD, KEPT)]
    {
        // SAFETY: it sets a number in the allocator, under the allocator's own lock. Where it is refused, nothing has changed.
        unsafe { libc::mallopt(what, value) };
    }
}

#[cfg(target_env = "gnu")]
pub(crate) fn give_back_free() {
    // SAFETY: it gives back pages that hold nothing, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

pub(crate) fn let_go_of_code() {
    // SAFETY: the function keeps to what `dl_iterate_phdr` asks of it, and unwinds through nothing.
    unsafe { libc::dl_iterate_phdr(Some(let_go_of_object), std::ptr::null_mut()) };
}

/// For the program and each of its libraries.
///
/// # Safety
///
/// `info` is what `dl_iterate_phdr` gives: true of an object that stays loaded for the time of the call.
unsafe extern "C" fn let_go_of_object(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr as usize, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    // SAFETY: it reads a constant.
    let Ok(page @ 1..) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return 1 };
    for segment in headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W == 0) {
        // Whole pages of the segment: what it shares one with may be another's.
        let from = (base + segment.p_vaddr as usize).next_multiple_of(page);
        let to = (base + segment.p_vaddr as usize + segment.p_filesz as usize) / page * page;
        if from < to {
            // SAFETY: nothing was ever written there, not by the loader either (that has segments marked as writable, even
            // where it protects them afterwards), so that each page is as in the file and is read again when it is used.
            // Where it is refused, nothing has changed.
            unsafe { libc::madvise(from as *mut c_void, to - from, libc::MADV_DONTNEED) };
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Of our own file's pages that may be run, in kB.
    fn resident_code() -> u64 {
        let own = std::env::current_exe().unwrap();
        let map = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut is_code, mut sum) = (false, 0);
        for line in map.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words.as_slice() {
                ["Rss:", kb, "kB"] if is_code => sum += kb.parse::<u64>().unwrap(),
                [_, rights, _, _, _, file] => is_code = *rights == "r-xp" && own.to_str() == Some(file),
                // A mapping without a file.
                [_, rights, _, _, "0"] if rights.len() == 4 => is_code = false,
                _ => {}
            }
        }
        sum
    }

    #[test]
    fn code_that_was_let_go_of_is_no_longer_resident_and_runs_all_the_same() {
        let before = resident_code();
        super::let_go_of_code();
        let after = resident_code();
        assert!(after < before, "{before} kB before, {after} kB after");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let works = || {
                let mut texts = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    texts.push(format!("{:?} {}", std::thread::current().id(), texts.len()));
                    texts.truncate(1000);
                }
            };
            scope.spawn(works);
            scope.spawn(works);
            (0..200).for_each(|_| super::let_go_of_code());
            done.store(true, Ordering::Relaxed);
        });
    }
}

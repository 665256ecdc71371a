//! What keeps this process small: it runs all day beside a person's own programs, and works for moments of it.
//!
//! Frames and output come in megabytes, seldom; starting, greeting and signing in need code that is not needed again.

/// Has the allocator give large blocks back to the system as soon as they are freed. Call it first thing in `main`.
///
/// glibc alone keeps them: once it has freed a block that it had from `mmap`, blocks of that size come from its heap, up to
/// 32 MiB each, and a heap gives back only what lies free at its end. An answer of 16 MiB is made in steps of which each
/// needs another block of it, and together they stayed. The price is a page fault for each page of a large block.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    crate::sys::memory::return_large_blocks();
}

/// Gives back what is free on the heap, and lets go of the code that has run so far. To be called when there is nothing to
/// do: what is needed again comes back from the page cache, in a fraction of a millisecond.
pub fn let_go() {
    #[cfg(target_os = "linux")]
    crate::sys::memory::let_go();
}

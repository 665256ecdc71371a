//! What keeps this process small: it runs all day beside a person's own programs, and works for moments of it.
//!
//! Output comes in megabytes, seldom; starting, greeting and signing in need code that is not needed again.

/// Has the allocator keep what is free until [`give_back_free`], and then give back all of it. Call it first thing in `main`.
///
/// glibc decides by itself what it keeps, from the largest block that was ever freed, and has a heap for each thread, whose
/// free end it never gives back when asked to. Reading file after file is twice as fast with memory that is kept, for the
/// pages need not be taken and cleared anew; after a command with megabytes of output the same memory only lies there. So
/// all is kept on one heap, and given back where that is known: after such output, and when there is nothing to do.
pub fn keep_until_given_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    crate::sys::memory::keep_until_given_back();
}

/// Gives back what is free on the heap.
pub fn give_back_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    crate::sys::memory::give_back_free();
}

/// Gives back what is free on the heap, and lets go of the code that has run so far. To be called when there is nothing to
/// do: what is needed again comes back from the page cache, in a fraction of a millisecond.
pub fn let_go() {
    give_back_free();
    #[cfg(target_os = "linux")]
    crate::sys::memory::let_go_of_code();
}

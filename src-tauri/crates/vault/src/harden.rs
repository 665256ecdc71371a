use std::io;

/// Keeps this process' memory to itself: no core file, and on Linux not dumpable, so that another process of the same
/// user can neither attach to it nor read its `/proc/<pid>/environ` and `mem`. Call it first thing in `main`, before
/// a secret is read. A program that is then executed starts out dumpable again.
///
/// # Errors
/// The operating system refused.
pub fn harden_process() -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

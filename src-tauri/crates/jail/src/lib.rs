//! A root directory handle and every file operation beneath it, kept there by the kernel.
//!
//! [`RootDir`] is opened once, when a session is activated, and owns the only way to the files of that session: a path
//! from a request is taken from directory handle to directory handle, and nothing here joins a root path and a requested
//! path and opens the result. A link that stays inside works, whatever leads outside is
//! [`JailError::OutsideRoot`], and our own folders count as outside. It promises this against anybody who renames
//! things meanwhile. What it cannot see are hard links and bind mounts that lead outside, for these are no paths.
//!
//! | file | what it settles |
//! |---|---|
//! | `rules` | what a path may look like, for each OS |
//! | `request` | text to steps |
//! | `folders`, `root`, `case` | which folder may be a root, and the handle on it |
//! | `trail`, `walk` | steps to a directory handle and a name |
//! | `ops` | read, write, stat, list, delete, rename |
//! | `trash` | deletions that can be undone |
//! | `browse` | folders to choose a root from |
//! | `sys` | the calls of each OS |
//!
//! All calls block. Those that can take long are given a `stop` that they ask every so often.

mod browse;
mod case;
mod error;
mod folders;
#[doc(hidden)]
pub mod fuzzing;
mod ops;
mod request;
mod root;
mod rules;
mod sys;
mod trail;
mod trash;
mod types;
mod walk;

pub use browse::{DirEntry, list_directories};
pub use error::{JailError, RootRefusal};
pub use ops::MAX_ENTRIES;
pub use root::{RootDir, RootOptions, Walker, canonical, check_root};
pub use types::{
    DeleteOptions, Entry, FileContents, FileOp, Identity, Kind, ListOptions, Listing, Metadata, ReadRange,
    Stat, WorkingDir,
};
pub use walk::MAX_LINKS;

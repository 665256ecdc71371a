//! Folder browsing. The platform never sends a path: it hands back references that this connection gave it, each of which
//! dies after five minutes, with the connection, or when newer ones push it out.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::{DirectoryEntry, DirectoryListRequest, DirectoryListResponse};

use super::roots::{Browsable, Seen};

/// How long a reference lives.
pub(crate) const LIFETIME: Duration = Duration::from_secs(5 * 60);
const MAX_BROWSES: usize = 8;
const MAX_REFERENCES: usize = 1200;
const MAX_CURSORS: usize = 32;
/// Entries of one answer.
const PAGE: usize = 200;
/// Entries that one listing looks at.
const SCAN_LIMIT: usize = 1000;

/// Why a folder was not listed or taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrowseError {
    #[error("the reference is unknown, expired, or of an earlier connection; start a new browse")]
    InvalidReference,
    #[error("browse_id and directory_ref go together, and a cursor needs both; start with all three null")]
    IncompleteRequest,
    #[error("the folder is gone, or may not be used by this program; choose another")]
    Unavailable,
    #[error("the operating system gave no random bytes; try again")]
    NoRandomness,
}

/// The browses of one control connection.
#[derive(Default)]
pub(crate) struct Browses {
    open: Mutex<VecDeque<Browse>>,
}

struct Browse {
    id: String,
    references: Recent<PathBuf>,
    cursors: Recent<Rest>,
}

/// What a cursor stands for: the entries of one listing that were not returned yet.
#[derive(Clone)]
struct Rest {
    folder: PathBuf,
    entries: Vec<jail::DirEntry>,
    truncated: bool,
}

/// A map that forgets its oldest entries, by age and by number.
struct Recent<T> {
    limit: usize,
    values: HashMap<String, (Instant, T)>,
    order: VecDeque<String>,
}

impl<T: Clone> Recent<T> {
    fn new(limit: usize) -> Self {
        Self { limit, values: HashMap::new(), order: VecDeque::new() }
    }

    fn insert(&mut self, now: Instant, value: T) -> Result<String, BrowseError> {
        let token = token()?;
        self.values.insert(token.clone(), (now, value));
        self.order.push_back(token.clone());
        while self.order.len() > self.limit {
            if let Some(oldest) = self.order.pop_front() {
                self.values.remove(&oldest);
            }
        }
        Ok(token)
    }

    fn find(&self, now: Instant, token: &str) -> Option<T> {
        let (made, value) = self.values.get(token)?;
        (now.duration_since(*made) < LIFETIME).then(|| value.clone())
    }
}

/// 24 random bytes, base64url.
fn token() -> Result<String, BrowseError> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|_| BrowseError::NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A listing, and the path that the log names for it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) response: DirectoryListResponse,
    pub(crate) path: Option<PathBuf>,
}

impl Browses {
    fn open(&self) -> MutexGuard<'_, VecDeque<Browse>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request. Reads folders, so it may block; no lock is held meanwhile.
    pub(crate) fn list(
        &self,
        browsable: &Browsable,
        request: &DirectoryListRequest,
        now: Instant,
    ) -> Result<Listed, BrowseError> {
        let seen = browsable.look();
        match (&request.browse_id, &request.directory_ref, &request.cursor) {
            (None, None, None) => self.start(&seen, now),
            (Some(browse), Some(reference), None) => self.enter(&seen, browse, reference, now),
            (Some(browse), Some(reference), Some(cursor)) => {
                self.go_on(&seen, browse, reference, cursor, now)
            }
            (Some(_), None, _) | (None, Some(_), _) | (None, None, Some(_)) => {
                Err(BrowseError::IncompleteRequest)
            }
        }
    }

    /// The folder that a reference stands for, to be attached. The browse is used up, whatever comes of it.
    pub(crate) fn take(
        &self,
        browsable: &Browsable,
        browse: &str,
        reference: &str,
        now: Instant,
    ) -> Result<PathBuf, BrowseError> {
        let path = self.resolve(browse, reference, now)?;
        self.open().retain(|open| open.id != browse);
        browsable.look().still(path).ok_or(BrowseError::Unavailable)
    }

    fn start(&self, seen: &Seen<'_>, now: Instant) -> Result<Listed, BrowseError> {
        let id = token()?;
        let name = |path: &Path| {
            path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into())
        };
        let starts = seen.starts.iter().filter(|path| path.to_str().is_some());
        let entries = starts.map(|path| jail::DirEntry { name: name(path), path: path.clone() }).collect();
        let mut open = self.open();
        while open.len() >= MAX_BROWSES {
            open.pop_front();
        }
        let (references, cursors) = (Recent::new(MAX_REFERENCES), Recent::new(MAX_CURSORS));
        open.push_back(Browse { id: id.clone(), references, cursors });
        drop(open);
        self.answer(seen, &id, None, Rest { folder: PathBuf::new(), entries, truncated: false }, now)
    }

    fn enter(
        &self,
        seen: &Seen<'_>,
        browse: &str,
        reference: &str,
        now: Instant,
    ) -> Result<Listed, BrowseError> {
        let path = seen.still(self.resolve(browse, reference, now)?).ok_or(BrowseError::Unavailable)?;
        let (entries, truncated) =
            jail::list_directories(&path, SCAN_LIMIT).map_err(|_| BrowseError::Unavailable)?;
        let entries = entries.into_iter().filter(|e| seen.still(e.path.clone()).is_some()).collect();
        let rest = Rest { folder: path.clone(), entries, truncated };
        self.answer(seen, browse, Some((&path, reference)), rest, now)
    }

    fn go_on(
        &self,
        seen: &Seen<'_>,
        browse: &str,
        reference: &str,
        cursor: &str,
        now: Instant,
    ) -> Result<Listed, BrowseError> {
        let path = seen.still(self.resolve(browse, reference, now)?).ok_or(BrowseError::Unavailable)?;
        let open = self.open();
        let found = open.iter().find(|b| b.id == browse).and_then(|b| b.cursors.find(now, cursor));
        drop(open);
        let rest = found.filter(|rest| rest.folder == path).ok_or(BrowseError::InvalidReference)?;
        self.answer(seen, browse, Some((&path, reference)), rest, now)
    }

    fn resolve(&self, browse: &str, reference: &str, now: Instant) -> Result<PathBuf, BrowseError> {
        let open = self.open();
        let browse = open.iter().find(|b| b.id == browse).ok_or(BrowseError::InvalidReference)?;
        browse.references.find(now, reference).ok_or(BrowseError::InvalidReference)
    }

    /// One page of a listing, with references for all it names. `current` is the folder listed and its reference.
    fn answer(
        &self,
        seen: &Seen<'_>,
        browse_id: &str,
        current: Option<(&Path, &str)>,
        mut rest: Rest,
        now: Instant,
    ) -> Result<Listed, BrowseError> {
        let later = rest.entries.split_off(rest.entries.len().min(PAGE));
        let page = std::mem::replace(&mut rest.entries, later);
        let parent = current.and_then(|(path, _)| path.parent()).filter(|parent| seen.allows(parent));
        let mut open = self.open();
        let browse = open.iter_mut().find(|b| b.id == browse_id).ok_or(BrowseError::InvalidReference)?;
        let mut entries = Vec::with_capacity(page.len());
        for jail::DirEntry { name, path } in page {
            // Names and paths that are not UTF-8 were left out by the listing.
            let shown = path.to_string_lossy().into_owned();
            entries.push(DirectoryEntry {
                directory_ref: browse.references.insert(now, path)?,
                name,
                path: shown,
            });
        }
        let parent_ref = parent.map(|parent| browse.references.insert(now, parent.to_owned())).transpose()?;
        let truncated = rest.truncated;
        let more = !rest.entries.is_empty();
        let next_cursor = more.then(|| browse.cursors.insert(now, rest)).transpose()?;
        drop(open);
        let current_entry = current.map(|(path, reference)| DirectoryEntry {
            directory_ref: reference.to_owned(),
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            path: path.to_string_lossy().into_owned(),
        });
        let response = DirectoryListResponse {
            browse_id: browse_id.to_owned(),
            current: current_entry,
            parent_ref,
            entries,
            next_cursor,
            truncated,
            expires_at: protocol::now() + LIFETIME.as_secs_f64(),
        };
        Ok(Listed { response, path: current.map(|(path, _)| path.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folders {
        _dir: tempfile::TempDir,
        root: PathBuf,
        browsable: Browsable,
        browses: Browses,
        now: Instant,
    }

    fn folders(below: &[&str]) -> Folders {
        let dir = tempfile::tempdir().unwrap();
        let root = jail::check_root(dir.path(), &jail::RootOptions::default()).unwrap().join("work");
        fs::create_dir(&root).unwrap();
        for name in below {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let options =
            jail::RootOptions { forbidden: vec![root.join("own")], home: None, portable_names: false };
        let browsable = Browsable { roots: vec![root.clone()], home: false, options };
        Folders { _dir: dir, root, browsable, browses: Browses::default(), now: Instant::now() }
    }

    impl Folders {
        fn list(
            &self,
            browse: &DirectoryListResponse,
            reference: &str,
            cursor: Option<&str>,
        ) -> Result<DirectoryListResponse, BrowseError> {
            let request = DirectoryListRequest {
                browse_id: Some(browse.browse_id.clone()),
                directory_ref: Some(reference.to_owned()),
                cursor: cursor.map(str::to_owned),
            };
            self.browses.list(&self.browsable, &request, self.now).map(|listed| listed.response)
        }

        fn start(&self) -> DirectoryListResponse {
            self.browses.list(&self.browsable, &DirectoryListRequest::default(), self.now).unwrap().response
        }

        fn enter_root(&self) -> DirectoryListResponse {
            let start = self.start();
            self.list(&start, &start.entries[0].directory_ref, None).unwrap()
        }
    }

    fn names(listing: &DirectoryListResponse) -> Vec<&str> {
        listing.entries.iter().map(|e| e.name.as_str()).collect()
    }

    #[test]
    fn a_browse_starts_at_the_roots_and_goes_down_and_up() {
        let f = folders(&["b", "A/inner", "c"]);
        let start = f.start();
        assert_eq!((names(&start), start.current.is_none()), (vec!["work"], true));
        let root = f.list(&start, &start.entries[0].directory_ref, None).unwrap();
        assert_eq!(names(&root), ["A", "b", "c"], "sorted by folded name");
        assert_eq!(root.parent_ref, None, "nothing above a root is shown");
        let inner = f.list(&root, &root.entries[0].directory_ref, None).unwrap();
        assert_eq!(names(&inner), ["inner"]);
        let up = f.list(&root, &inner.parent_ref.unwrap(), None).unwrap();
        assert_eq!(names(&up), ["A", "b", "c"]);
    }

    #[test]
    fn long_listings_come_in_pages_and_say_when_they_were_cut() {
        let all: Vec<String> = (0..450).map(|n| format!("d{n:04}")).collect();
        let f = folders(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let start = f.start();
        let root = start.entries[0].directory_ref.clone();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = f.list(&start, &root, cursor.as_deref()).unwrap();
            assert!(page.entries.len() <= PAGE && !page.truncated);
            seen.extend(page.entries.iter().map(|e| e.name.clone()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn links_and_own_folders_and_files_are_not_offered() {
        let f = folders(&["real", "own"]);
        fs::write(f.root.join("file"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(f.root.join("real"), f.root.join("link")).unwrap();
        assert_eq!(names(&f.enter_root()), ["real"]);
    }

    #[test]
    fn references_die_of_age_and_belong_to_their_browse() {
        let mut f = folders(&["a"]);
        let (one, two) = (f.start(), f.start());
        let reference = one.entries[0].directory_ref.clone();
        assert_eq!(f.list(&two, &reference, None), Err(BrowseError::InvalidReference));
        f.now += LIFETIME - Duration::from_secs(1);
        assert!(f.list(&one, &reference, None).is_ok());
        f.now += Duration::from_secs(1);
        assert_eq!(f.list(&one, &reference, None), Err(BrowseError::InvalidReference));
    }

    #[test]
    fn the_oldest_browse_makes_room_for_the_ninth() {
        let f = folders(&[]);
        let first = f.start();
        let reference = first.entries[0].directory_ref.clone();
        (0..7).for_each(|_| drop(f.start()));
        assert!(f.list(&first, &reference, None).is_ok());
        f.start();
        assert_eq!(f.list(&first, &reference, None), Err(BrowseError::InvalidReference));
    }

    #[test]
    fn old_references_are_pushed_out_not_kept_for_ever() {
        let all: Vec<String> = (0..200).map(|n| format!("d{n:03}")).collect();
        let f = folders(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let start = f.start();
        let root = start.entries[0].directory_ref.clone();
        // The root's reference and six listings are one more than is kept, and the root's is the oldest.
        (0..6).for_each(|_| drop(f.list(&start, &root, None).unwrap()));
        let gone = f.list(&start, &root, None);
        assert_eq!(gone, Err(BrowseError::InvalidReference));
    }

    #[test]
    fn a_folder_that_was_swapped_for_a_link_is_not_taken() {
        let f = folders(&["a"]);
        let root = f.enter_root();
        fs::remove_dir(f.root.join("a")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", f.root.join("a")).unwrap();
        let taken = f.browses.take(&f.browsable, &root.browse_id, &root.entries[0].directory_ref, f.now);
        assert_eq!(taken, Err(BrowseError::Unavailable));
    }

    #[test]
    fn taking_a_folder_uses_the_browse_up() {
        let f = folders(&["a"]);
        let root = f.enter_root();
        let reference = &root.entries[0].directory_ref;
        assert_eq!(
            f.browses.take(&f.browsable, &root.browse_id, reference, f.now).unwrap(),
            f.root.join("a")
        );
        assert_eq!(
            f.browses.take(&f.browsable, &root.browse_id, reference, f.now),
            Err(BrowseError::InvalidReference)
        );
    }

    #[test]
    fn half_a_request_is_refused() {
        let f = folders(&[]);
        let start = f.start();
        for (browse, reference, cursor) in
            [(true, false, false), (false, true, false), (false, false, true), (true, false, true)]
        {
            let request = DirectoryListRequest {
                browse_id: browse.then(|| start.browse_id.clone()),
                directory_ref: reference.then(|| start.entries[0].directory_ref.clone()),
                cursor: cursor.then(|| "x".to_owned()),
            };
            assert_eq!(
                f.browses.list(&f.browsable, &request, f.now).unwrap_err(),
                BrowseError::IncompleteRequest
            );
        }
    }
}

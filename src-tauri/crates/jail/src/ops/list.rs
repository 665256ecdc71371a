//! Listings come in byte order of the path, also when they are cut short: then they are the first ones of all, and the
//! same ones every time. So directories are read in order, a bounded piece at a time, and the walk ends with the last
//! entry that is asked for.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{MAIN_SEPARATOR, MAIN_SEPARATOR_STR, Path};

use globset::{GlobBuilder, GlobMatcher};

use super::check;
use crate::error::{Fault, JailError, Outcome};
use crate::request::{Steps, text};
use crate::root::{Root, RootDir};
use crate::trail::Trail;
use crate::types::{Entry, Identity, Kind, ListOptions, Listing};
use crate::walk::steadily;

/// Most entries that one listing gives.
pub const MAX_ENTRIES: usize = 10_000;

/// Names of one directory held at a time; a larger one is read again for the next piece.
const PIECE: usize = 16 * 1024;

/// Names held at a time in all. Directories deep down a tree of large ones get smaller pieces.
const HELD: usize = 128 * 1024;

/// Longest glob, in bytes: as long as a path.
const MAX_GLOB: usize = 4096;

impl RootDir {
    /// Lists a folder. Links are described, never followed; folders that cannot be read are listed but not entered.
    pub fn list(
        &self,
        path: &str,
        options: &ListOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Listing, JailError> {
        let steps = self.begin(path)?;
        let glob = options.glob.as_deref().map(|glob| self.0.matcher(glob)).transpose()?;
        steadily(|| self.0.list(&steps, options, glob.as_ref(), stop)).map_err(|fault| fault.at(path))
    }
}

impl Root {
    fn matcher(&self, glob: &str) -> Result<GlobMatcher, JailError> {
        let bad = |reason: String| JailError::BadGlob { glob: glob.to_owned(), reason };
        if glob.len() > MAX_GLOB {
            return Err(bad("it is too long".to_owned()));
        }
        let built = GlobBuilder::new(glob).case_insensitive(self.anchor.folds).backslash_escape(true).build();
        Ok(built.map_err(|error| bad(error.kind().to_string()))?.compile_matcher())
    }

    fn list(
        &self,
        steps: &Steps,
        options: &ListOptions,
        glob: Option<&GlobMatcher>,
        stop: &dyn Fn() -> bool,
    ) -> Outcome<Listing> {
        let trail = self.locate(steps, true)?.into_dir()?;
        let max = options.max_entries.min(MAX_ENTRIES);
        let mut lister = Lister {
            root: self,
            options,
            glob,
            stop,
            own: self.own_identities(),
            trail,
            levels: Vec::new(),
            held: 0,
        };
        lister.open_level()?;
        let mut listing = Listing { entries: Vec::new(), truncated: false };
        while let Some(entry) = lister.next()? {
            if listing.entries.len() == max {
                listing.truncated = true;
                break;
            }
            listing.entries.push(entry);
        }
        Ok(listing)
    }
}

/// A name, or all that is below it.
#[derive(Clone, Debug)]
struct Item {
    name: OsString,
    /// Stands for the contents, whose paths begin with the name and a separator.
    below: bool,
}

impl Item {
    fn byte(&self, index: usize) -> Option<u8> {
        let name = self.name.as_encoded_bytes();
        match name.get(index) {
            Some(byte) => Some(*byte),
            None => (self.below && index == name.len()).then_some(MAIN_SEPARATOR as u8),
        }
    }

    /// Order of the paths.
    fn order(&self, other: &Item) -> Ordering {
        let (a, b) = (self.name.as_encoded_bytes(), other.name.as_encoded_bytes());
        let common = a.len().min(b.len());
        a[..common]
            .cmp(&b[..common])
            .then_with(|| self.byte(common).cmp(&other.byte(common)))
            .then_with(|| self.byte(common + 1).cmp(&other.byte(common + 1)))
    }
}

struct Level {
    items: std::vec::IntoIter<Item>,
    /// The last item read, when there are more after it.
    more_after: Option<Item>,
    /// Path of the directory with a separator.
    prefix: String,
    size: usize,
}

struct Lister<'a> {
    root: &'a Root,
    options: &'a ListOptions,
    glob: Option<&'a GlobMatcher>,
    stop: &'a dyn Fn() -> bool,
    own: Vec<Identity>,
    trail: Trail,
    levels: Vec<Level>,
    held: usize,
}

impl Lister<'_> {
    /// The next entry in order.
    fn next(&mut self) -> Outcome<Option<Entry>> {
        while let Some(level) = self.levels.last_mut() {
            check(self.stop)?;
            match level.items.next() {
                Some(item) if item.below => self.descend(&item.name)?,
                Some(item) => {
                    let prefix = &level.prefix;
                    match self.trail.dir().stat(&item.name) {
                        Ok(meta) if self.own.contains(&meta.identity) => {}
                        Ok(meta) => {
                            let name = text(&item.name);
                            let path = format!("{prefix}{name}");
                            return Ok(Some(Entry {
                                name,
                                path,
                                kind: meta.kind,
                                size: meta.size,
                                mtime: meta.mtime,
                            }));
                        }
                        // Gone since it was read.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                None => self.refill()?,
            }
        }
        Ok(None)
    }

    /// Goes on with a large directory, or back to the one above.
    fn refill(&mut self) -> Outcome<()> {
        let Some(done) = self.levels.pop() else { return Ok(()) };
        self.held -= done.size;
        if let Some(after) = done.more_after {
            return self.read_level(Some(after), done.prefix);
        }
        if !self.levels.is_empty() {
            self.trail.leave()?;
        }
        Ok(())
    }

    fn descend(&mut self, name: &OsStr) -> Outcome<()> {
        match self.trail.enter(name) {
            Ok(identity) if self.own.contains(&identity) => self.trail.leave().map(drop),
            Ok(_) => match self.open_level() {
                // May be entered, may not be read.
                Err(Fault::Io(error)) if error.kind() == ErrorKind::PermissionDenied => {
                    self.trail.leave().map(drop)
                }
                other => other,
            },
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => Ok(()),
                _ => Err(error.into()),
            },
        }
    }

    fn open_level(&mut self) -> Outcome<()> {
        let mut prefix = text(self.trail.path(&self.root.path).as_os_str());
        if !prefix.ends_with(MAIN_SEPARATOR) {
            prefix.push_str(MAIN_SEPARATOR_STR);
        }
        self.read_level(None, prefix)
    }

    /// Reads the first items of the directory that come after `after`.
    fn read_level(&mut self, after: Option<Item>, prefix: String) -> Outcome<()> {
        let most = PIECE.min(HELD.saturating_sub(self.held)).max(64);
        let mut piece = Piece { items: Vec::new(), most, more: false };
        let mut seen = 0_usize;
        let mut stopped = false;
        let dir = self.trail.dir();
        let mut failed = None;
        dir.scan(&mut |entry| {
            seen += 1;
            stopped = seen.is_multiple_of(1024) && (self.stop)();
            if !self.options.include_hidden && entry.hidden {
                return !stopped;
            }
            if !self.own.is_empty() && self.root.is_own(self.trail.names().chain([entry.name])) {
                return !stopped;
            }
            let mut offer = |below: bool| {
                let item = Item { name: entry.name.to_owned(), below };
                if after.as_ref().is_none_or(|after| item.order(after).is_gt()) {
                    piece.take(item);
                }
            };
            if self.glob.is_none_or(|glob| glob.is_match(Path::new(entry.name))) {
                offer(false);
            }
            if self.options.recursive {
                match entry.kind.map_or_else(|| dir.stat(entry.name).map(|meta| meta.kind), Ok) {
                    Ok(Kind::Directory) => offer(true),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => failed = Some(error),
                }
            }
            !stopped && failed.is_none()
        })?;
        if stopped {
            return Err(Fault::Cancelled);
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        let (items, more) = piece.finish();
        self.held += items.len();
        let more_after = if more { items.last().cloned() } else { None };
        self.levels.push(Level { size: items.len(), items: items.into_iter(), more_after, prefix });
        Ok(())
    }
}

/// The first so many items in order.
struct Piece {
    items: Vec<Item>,
    most: usize,
    more: bool,
}

impl Piece {
    fn take(&mut self, item: Item) {
        self.items.push(item);
        if self.items.len() >= 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.items.sort_unstable_by(Item::order);
        if self.items.len() > self.most {
            self.items.truncate(self.most);
            self.more = true;
        }
    }

    fn finish(mut self) -> (Vec<Item>, bool) {
        self.cut();
        (self.items, self.more)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_are_ordered_as_their_paths_are(names in proptest::collection::vec(("[a-c!-0]{1,4}", any::<bool>()), 2)) {
            let items: Vec<Item> =
                names.iter().map(|(name, below)| Item { name: name.replace('/', "_").into(), below: *below }).collect();
            let path = |item: &Item| {
                text(&item.name) + if item.below { MAIN_SEPARATOR_STR } else { "" }
            };
            prop_assert_eq!(items[0].order(&items[1]), path(&items[0]).cmp(&path(&items[1])));
        }

        #[test]
        fn a_piece_keeps_the_first(names in proptest::collection::vec("[a-z]{1,3}", 0..60), most in 1_usize..20) {
            let mut piece = Piece { items: Vec::new(), most, more: false };
            for name in &names {
                piece.take(Item { name: name.into(), below: false });
            }
            let (items, more) = piece.finish();
            let mut sorted = names.clone();
            sorted.sort();
            prop_assert_eq!(more, names.len() > most);
            sorted.truncate(most);
            prop_assert_eq!(items.iter().map(|item| text(&item.name)).collect::<Vec<_>>(), sorted);
        }
    }
}

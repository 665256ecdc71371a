use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use jail::{
    DeleteOptions, FileContents, JailError, ListOptions, Listing, ReadRange, RootDir, RootOptions, Walker,
};
use tempfile::TempDir;

pub(crate) const LIMIT: u64 = 10 * 1024 * 1024;

/// A home with a root in it, and a place outside with a secret.
pub(crate) struct World {
    pub(crate) root: RootDir,
    pub(crate) work: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) outside: PathBuf,
    _folder: TempDir,
}

/// Runs `test` in a new world for each way of walking.
pub(crate) fn on_each_walker(test: impl Fn(&World)) {
    for walker in [Walker::Kernel, Walker::Portable] {
        eprintln!("walker: {walker:?}");
        test(&World::new(walker));
    }
}

impl World {
    pub(crate) fn new(walker: Walker) -> World {
        World::with(walker, |_| {}, |home| home.join("work"))
    }

    /// A world whose home is the root.
    pub(crate) fn home_root(walker: Walker, adjust: impl Fn(&mut RootOptions)) -> World {
        World::with(walker, adjust, Path::to_path_buf)
    }

    pub(crate) fn with(
        walker: Walker,
        adjust: impl Fn(&mut RootOptions),
        at: impl Fn(&Path) -> PathBuf,
    ) -> World {
        // In memory where that can be: the disk would be slow, and is not what is tested.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (home, outside) = (base.join("home"), base.join("outside"));
        let work = at(&home);
        fs::create_dir_all(&work).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "SECRET").unwrap();
        let mut options = RootOptions { home: Some(home.clone()), ..RootOptions::default() };
        adjust(&mut options);
        let root = RootDir::open_with(&work, &options, walker).unwrap();
        World { root, work, home, outside, _folder: folder }
    }

    /// Path in the root, for the test's own doings.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.work.join(path)
    }

    pub(crate) fn put(&self, path: &str, content: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.at(name)).unwrap();
    }

    pub(crate) fn fifo(&self, name: &str) {
        // By its program: rustix has no mkfifo for macOS.
        assert!(Command::new("mkfifo").arg(self.at(name)).status().unwrap().success());
    }

    pub(crate) fn read(&self, path: &str) -> Result<FileContents, JailError> {
        self.root.read(path, ReadRange::default(), LIMIT)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.read(path).unwrap().bytes).unwrap()
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> Result<(), JailError> {
        self.root.write(path, content.as_bytes(), false, LIMIT)
    }

    pub(crate) fn list(&self, path: &str, options: &ListOptions) -> Result<Listing, JailError> {
        self.root.list(path, options, &|| false)
    }

    /// Paths of a listing, relative to the root.
    pub(crate) fn paths(&self, path: &str, options: &ListOptions) -> Vec<String> {
        let prefix = format!("{}/", self.work.to_str().unwrap());
        let listing = self.list(path, options).unwrap();
        listing.entries.iter().map(|entry| entry.path.strip_prefix(&prefix).unwrap().to_owned()).collect()
    }

    pub(crate) fn delete(&self, path: &str, recursive: bool) -> Result<(), JailError> {
        let options = DeleteOptions { recursive, ..DeleteOptions::default() };
        self.root.delete(path, &options, &|| false)
    }

    pub(crate) fn rename(&self, src: &str, dst: &str, overwrite: bool) -> Result<(), JailError> {
        self.root.rename(src, dst, overwrite, &|| false)
    }

    /// Names in a folder of the root, hidden ones too.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        names(&self.at(path))
    }

    /// Nothing outside was changed.
    pub(crate) fn assert_outside_is_whole(&self) {
        assert_eq!(names(&self.outside), ["secret"]);
        assert_eq!(fs::read_to_string(self.outside.join("secret")).unwrap(), "SECRET");
    }
}

pub(crate) fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The result of `work`, which must come within a few seconds.
pub(crate) fn promptly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(10)).expect("it hangs")
}

/// Says that a test cannot be made here, and why.
pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A small file system of its own, for as long as this lives. None without the right to mount.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn tmpfs(at: &Path, size: &str) -> Option<Mounted> {
        let output = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0755"), "tmpfs"])
            .arg(at)
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Mounted(at.to_owned())),
            _ => {
                skip("a file system cannot be mounted here");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

pub(crate) fn non_utf8(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

macro_rules! assert_err {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {{
        let result = $result;
        assert!(matches!(result, Err($pattern) $(if $guard)?), "{} gave {result:?}", stringify!($result));
    }};
}
pub(crate) use assert_err;

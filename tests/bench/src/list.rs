//! `FILE_LIST` beside a bare walk.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::measure::{Pair, in_turn, ms};
use crate::report::{Bar, Row};
use crate::wire::{Ours, frame};

const FOLDERS: usize = 200;
const FILES_EACH: usize = 100;
const ROUNDS: usize = 9;

/// A recursive list of 20 000 files, of which 10 000 entries are answered, through the whole executor.
pub(crate) fn list() -> Result<Vec<Row>> {
    let mut ours = Ours::start()?;
    let root = ours.rig.root.clone();
    make_tree(&root)?;
    let request = frame("FILE_LIST", 0, &json!({"path": ".", "recursive": true, "max_entries": 10_000}));
    let answer = ours.platform().ask(request.clone())?;
    ensure!(answer.matches(r#""is_symlink""#).count() == 10_000, "not 10 000 entries");
    let frames = [request];
    let Pair { ours, floor } = in_turn(
        ROUNDS,
        || Ok(ms(ours.platform().drive(&frames, 1)?)),
        || {
            let began = Instant::now();
            ensure!(walk(&root)? == FOLDERS * FILES_EACH, "the walk missed files");
            Ok(ms(began.elapsed()))
        },
    )?;
    let note = "20 000 files, 10 000 entries, over the wire; floor: `ignore` and metadata of all".to_owned();
    let bar = Bar::RatioAtMost(1.5);
    Ok(vec![Row { name: "list-20k", ours, floor: Some(floor), unit: "ms", bar, note }])
}

fn make_tree(root: &Path) -> Result<()> {
    for folder in 0..FOLDERS {
        let folder = root.join(format!("folder-{folder:03}"));
        std::fs::create_dir(&folder)?;
        for file in 0..FILES_EACH {
            std::fs::write(folder.join(format!("file-{file:03}.txt")), "x")?;
        }
    }
    Ok(())
}

/// Files met, each with its metadata looked at.
fn walk(root: &Path) -> Result<usize> {
    let mut files = 0;
    for entry in ignore::WalkBuilder::new(root).standard_filters(false).build() {
        let entry = entry?;
        files += usize::from(entry.metadata()?.is_file());
    }
    Ok(files)
}

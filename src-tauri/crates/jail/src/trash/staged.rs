//! The system's trash takes a path. So the entry is first renamed, by handle, into a new folder beside it whose name
//! nobody could know, and what the path leads to is checked to be the entry. Put back from the trash, it comes back in
//! that folder.

use std::path::Path;

use crate::error::{Fault, Outcome};
use crate::ops::temporary_name;
use crate::root::Root;
use crate::sys::{self, Replace};
use crate::walk::Place;

/// Moves an entry into the trash. `NoTrash`, and the entry back in its place, when that cannot be.
pub(crate) fn put(root: &Root, place: &Place) -> Outcome<()> {
    let dir = place.dir();
    let staging = temporary_name();
    let identity = dir.stat(&place.name)?.identity;
    dir.make_dir(&staging, true)?;
    let staged = dir.open_dir(&staging).map_err(|_| Fault::Changed)?;
    let path = place.trail.path(&root.path).join(&staging).join(&place.name);
    let outcome = match dir.rename(&place.name, &staged, &place.name, Replace::Never) {
        Err(error) => Err(Fault::from(error)),
        Ok(()) => hand_over(&path, identity).inspect_err(|_| {
            // Should the way back be barred, it is still there, in the folder beside.
            let _ = staged.rename(&place.name, &dir, &place.name, Replace::Never);
        }),
    };
    // Not empty only if the entry could not go back.
    let _ = dir.remove_dir(&staging);
    outcome
}

fn hand_over(path: &Path, identity: crate::types::Identity) -> Outcome<()> {
    if sys::identity_at(path)? != identity {
        return Err(Fault::Changed);
    }
    context().delete(path).map_err(|_| Fault::NoTrash("the system's trash refused it".to_owned()))
}

#[cfg(target_os = "macos")]
fn context() -> trash::TrashContext {
    use trash::macos::{DeleteMethod, TrashContextExtMacos};
    let mut context = trash::TrashContext::default();
    // The other method asks Finder, and so the user for leave to control it.
    context.set_delete_method(DeleteMethod::NsFileManager);
    context
}

#[cfg(not(target_os = "macos"))]
fn context() -> trash::TrashContext {
    trash::TrashContext::default()
}

//! The recycle bin takes a path. So the entry's directory is held open without leave to delete it: then neither it nor
//! what is above it can be renamed or replaced, and the path leads where it was checked to lead.

use crate::error::{Fault, Outcome};
use crate::root::Root;
use crate::sys;
use crate::walk::Place;

/// Moves an entry into the recycle bin. `NoTrash`, and nothing done, where there is none that can take it.
pub(crate) fn put(root: &Root, place: &Place) -> Outcome<()> {
    let folder = place.trail.path(&root.path);
    if !sys::has_recycle_bin(&folder) {
        return Err(Fault::NoTrash("its drive has no recycle bin".to_owned()));
    }
    let dir = place.dir();
    let _pinned = dir.working_dir(folder.clone())?;
    if sys::identity_at(&folder)? != dir.meta()?.identity {
        return Err(Fault::Changed);
    }
    trash::delete(folder.join(&place.name))
        .map_err(|error| Fault::NoTrash(format!("the recycle bin refused it ({error:?})")))
}

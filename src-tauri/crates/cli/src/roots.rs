//! `deskhand roots`

use std::path::{Path, PathBuf};

use executor::config::{EditError, add_root, expand_home, remove_root};
use executor::doctor::unusable_root;
use executor::events::Command;
use executor::local::{Client, ClientError};
use jail::RootDir;

use crate::args::Roots;
use crate::context::{Context, block_on};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;

pub(crate) fn roots(context: &Context, command: Roots) -> Outcome {
    match command {
        Roots::Add { folder } => add(context, &folder),
        Roots::Remove { folder } => remove(context, &folder),
        Roots::List => list(context),
    }
}

fn add(context: &Context, folder: &Path) -> Outcome {
    let folder = absolute(folder)?;
    let root = RootDir::open(&folder, &context.dirs.root_options()).map_err(|error| {
        Failure::new(Code::Setup, format!("{} cannot be shared: {error}", folder.display()))
    })?;
    let path = root.path();
    let added = add_root(&context.dirs.config_file(), text(path)?).map_err(edit_failed)?;
    if root.is_whole_home() {
        output::note(
            "deskhand: warning: this is a whole home folder, with keys, mail and browser profiles in it; a folder inside it \
             is safer",
        );
    }
    if !added {
        return output::line(format_args!("{} was shared already", path.display()));
    }
    output::line(format_args!("{} is shared", path.display()))?;
    reload(context)
}

fn remove(context: &Context, folder: &Path) -> Outcome {
    let file = context.dirs.config_file();
    let folder = absolute(folder)?;
    // As it is written, else as it is called: a folder that is gone cannot be looked up any more.
    let canonical = jail::canonical(&folder).ok().filter(|canonical| *canonical != folder);
    for candidate in [Some(folder.clone()), canonical].into_iter().flatten() {
        if remove_root(&file, text(&candidate)?).map_err(edit_failed)? {
            output::line(format_args!("{} is shared no longer", candidate.display()))?;
            return reload(context);
        }
    }
    let message = format!("{} is not shared; see: deskhand roots list", folder.display());
    Err(Failure::new(Code::Usage, message))
}

fn list(context: &Context) -> Outcome {
    let loaded = context.load()?;
    let options = context.dirs.root_options();
    for root in loaded.config.roots() {
        output::line(root.display())?;
        if let Some(found) = unusable_root(&root, &options) {
            let advice = found.advice.unwrap_or_default();
            output::note(format_args!("deskhand: warning: {}: {advice}", found.detail));
        }
    }
    if loaded.config.browse_home {
        output::note("besides, browse_home lets the platform browse the home folder and mounted drives");
    }
    Ok(())
}

/// Tells the process that runs, if one does.
fn reload(context: &Context) -> Outcome {
    let told = block_on(async {
        Ok(async { Client::connect(&context.dirs.state).await?.command(Command::ReloadConfig).await }.await)
    })?;
    match told {
        Ok(_) | Err(ClientError::NotRunning) => {}
        Err(error) => output::note(format_args!(
            "deskhand: warning: the running deskhand has not read the configuration again ({error}); restart it"
        )),
    }
    Ok(())
}

/// From the current folder, unless it says otherwise.
fn absolute(folder: &Path) -> Outcome<PathBuf> {
    let expanded = folder.to_str().map_or_else(|| folder.to_owned(), expand_home);
    std::path::absolute(expanded).map_err(failed(Code::Usage))
}

fn text(path: &Path) -> Outcome<&str> {
    path.to_str()
        .ok_or_else(|| Failure::new(Code::Usage, "the folder's name is not UTF-8; it cannot be shared"))
}

fn edit_failed(error: EditError) -> Failure {
    Failure::new(Code::Setup, error)
}

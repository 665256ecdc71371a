//! What the pages need of the desktop: behind a trait, so that the pages' commands are one and the same in the app and
//! in tests.

use std::path::PathBuf;

/// The desktop around the app. Dialogs block until they are closed; they are called on a thread that may.
pub trait Native: Send + Sync {
    /// Opens an address in the person's browser.
    fn open_url(&self, url: &url::Url) -> Result<(), String>;
    /// Lets the person choose a folder; none when they change their mind.
    fn pick_folder(&self) -> Option<PathBuf>;
    /// Lets the person choose where to save; none when they change their mind.
    fn pick_file(&self, proposed: &str) -> Option<PathBuf>;
    /// Whether the operating system starts the app at login.
    fn starts_at_login(&self) -> bool;
    /// Switches that.
    fn set_start_at_login(&self, on: bool) -> Result<(), String>;
    /// Takes these keys for the kill switch, instead of the ones before. The error says why that cannot be.
    fn set_shortcut(&self, keys: &str) -> Result<(), String>;
    /// Whether the keys work.
    fn shortcut_works(&self) -> bool;
    /// Whether the tray icon is shown anywhere.
    fn has_tray(&self) -> bool;
    /// Brings the open prompt before the person.
    fn show_prompt(&self);
    /// Applies an appearance to the windows.
    fn set_appearance(&self, appearance: super::Appearance);
    /// What the operating system lets us do, and what not.
    fn permissions(&self) -> Vec<super::Permission>;
    /// Opens the page of the system's settings where that can be changed.
    fn open_permission(&self, id: &str) -> Result<(), String>;
    /// What is built in.
    fn licences(&self) -> Vec<super::Licence>;
}

//! The real app on a real desktop: an X server, a window manager, a panel, and the reference platform behind it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure fails the test")]

mod screen;
mod stage;
mod tray;

mod consent;
mod life;
mod menu;

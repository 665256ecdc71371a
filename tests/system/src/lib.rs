//! Harness of the whole-system tests: an executor with folders of its own ([`Rig`]), the reference platform with an agent
//! that works through it ([`Reference`]), and a platform that says exactly what a test tells it to, true or not
//! ([`scripted`]).

#![allow(clippy::expect_used, reason = "a harness of tests: what fails here is a failed test")]

pub mod reference;
pub mod rig;
pub mod scripted;

pub use reference::Reference;
pub use rig::Rig;

/// Commands are supervised by a copy of the running program; this lets a test binary be that copy.
#[ctor::ctor(unsafe)]
fn supervise() {
    exec::supervisor::run_if_asked();
}

//! The `deskhand` binary.
fn main() {}

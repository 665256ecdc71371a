//! Benchmarks with their floors.
fn main() {}

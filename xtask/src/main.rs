//! Entry point; see docs/architecture.md.
fn main() {}

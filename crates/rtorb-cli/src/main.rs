//! The command `rtorb`.
fn main() {}

//! The Rust back end.

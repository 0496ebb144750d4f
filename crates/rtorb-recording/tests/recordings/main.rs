//! Recordings: their files, how their calls join, and the causes of late calls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod causes;
mod files;
mod joining;
mod own_process;
mod synthetic;

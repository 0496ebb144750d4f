//! Experiments on operating system and ORB.
//!
//! An [`experiment::Experiment`] runs measured [`processes`] where [`rtorb_host::placement`] says, and returns
//! [`rtorb_results::Results`]. Scripts read these as JSON, and `rtorb-report` makes a page of them. The laboratory changes nothing of
//! what it measures, and contains no number that was not measured.
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod contestants;
mod effort;
pub mod error;
pub mod experiment;
pub mod experiments;
pub mod measurement;
pub mod model;
pub mod processes;
pub mod roles;
pub mod study;
pub mod suite;
pub mod systems;

pub use error::LabError;

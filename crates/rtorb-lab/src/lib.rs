//! Experiments on operating system and ORB, and their report.
//!
//! An [`experiment::Experiment`] runs measured [`processes`] where [`rtorb_host::placement`] says, and answers
//! [`results::Results`], which scripts read as JSON and `rtorb-report` makes a page of. The laboratory changes nothing of
//! what it measures, and holds no number that was not measured.
#![forbid(unsafe_code)]
#![allow(
    clippy::match_bool,
    reason = "the laboratory has some 200 of them from before the lint"
)]

pub mod contestants;
pub mod error;
pub mod experiment;
pub mod experiments;
pub mod inspect;
pub mod model;
pub mod processes;
pub mod study;

pub use error::LabError;

//! Experiments on operating system and ORB, and their report.
//!
//! An [`experiment::Experiment`] runs measured [`processes`] in [`placement::Placement`], collects their samples in
//! [`statistics`], and answers [`results::Results`], which scripts read as JSON and [`report`] makes a page of. The
//! laboratory changes nothing of what it measures, and holds no number that was not measured.
#![forbid(unsafe_code)]

pub mod agent;
pub mod awake;
mod begin_together;
pub mod burst;
pub mod child;
pub mod compare;
pub mod computation;
pub mod contestants;
pub mod cubit;
pub mod demux;
pub mod error;
pub mod experiment;
pub mod experiments;
pub mod export;
pub mod host;
pub mod idle_states;
pub mod inspect;
pub mod interrupt;
pub mod load;
pub mod operations;
pub mod peers;
pub mod ping_pong;
pub mod placement;
pub mod preflight;
pub mod probe;
pub mod processes;
pub mod profile;
pub mod rates;
pub mod report;
pub mod results;
pub mod runs;
pub mod square_wave;
pub mod statistics;
pub mod summary;
#[cfg(test)]
mod synthetic;
mod timestamp;
pub mod tools;
pub mod whitebox;

pub use error::LabError;

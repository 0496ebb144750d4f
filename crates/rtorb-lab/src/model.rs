//! The run that checks the model: a system that was analysed, built out of synthetic work and real calls, and observed.

pub(crate) mod component;
pub mod judgement;
mod plan;
mod records;
pub mod shown;
mod tree;
pub(crate) mod watcher;

//! The page of results: one file with tables and plots, made from results alone.
//!
//! [`write()`] and [`write_run`] make it. [`matrix`] is the table that a reader of a comparison of kernels needs first.
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![forbid(unsafe_code)]

mod answer;
mod campaign;
mod figures;
mod groups;
mod headline;
mod host_rows;
mod hosts;
pub mod matrix;
mod moment;
mod page;
pub mod papers;
mod prose;
mod section;
mod words;

pub use page::{Run, render, render_run, write, write_run};
pub use prose::{PAPERS, Paper};

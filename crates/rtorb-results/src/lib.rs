//! Results of measurements: the file that scripts and people read, and what is made of it.
//!
//! [`Results`] is one run of one experiment. Its samples come in [`cells`], by labels and round; what is said about them is declared
//! ([`statements`]): [`Claim`]s are held, missed, not judged or not measured. From results alone come [`statistics`], comparisons of runs ([`compare`]), tables ([`summary`],
//! [`export`]) and the profile of a platform ([`profile`]). Nothing here measures, and nothing here knows an ORB.
//!
//! Without the feature `experiments`, the crate has only [`statistics`], [`table`] and [`file`](mod@file), which every tool needs.
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![forbid(unsafe_code)]

#[cfg(feature = "experiments")]
pub mod by_round;
#[cfg(feature = "experiments")]
pub mod campaign;
#[cfg(feature = "experiments")]
pub mod cells;
#[cfg(feature = "experiments")]
pub mod claim;
#[cfg(feature = "experiments")]
pub mod compare;
#[cfg(feature = "experiments")]
pub mod emulation;
#[cfg(feature = "experiments")]
pub mod error;
#[cfg(feature = "experiments")]
pub mod explanation;
#[cfg(feature = "experiments")]
pub mod export;
pub mod file;
#[cfg(feature = "experiments")]
pub mod json;
#[cfg(feature = "experiments")]
pub mod judgement;
#[cfg(feature = "experiments")]
pub mod judgement_views;
#[cfg(feature = "experiments")]
pub mod labels;
#[cfg(feature = "experiments")]
pub mod metric;
#[cfg(feature = "experiments")]
pub mod pattern;
#[cfg(feature = "experiments")]
pub mod plot;
#[cfg(feature = "experiments")]
pub mod profile;
#[cfg(feature = "experiments")]
pub mod results;
#[cfg(feature = "experiments")]
pub mod runs;
#[cfg(feature = "experiments")]
pub mod series;
#[cfg(feature = "experiments")]
pub mod statements;
pub mod statistics;
#[cfg(feature = "experiments")]
pub mod summary;
#[cfg(all(feature = "experiments", any(test, feature = "synthetic")))]
pub mod synthetic;
#[cfg(feature = "experiments")]
pub mod systems;
pub mod table;
#[cfg(feature = "experiments")]
pub mod table_view;
#[cfg(feature = "experiments")]
pub mod timestamp;
#[cfg(feature = "experiments")]
mod view_setters;

pub use file::{is_wrong_path, write_atomically};
#[cfg(feature = "experiments")]
pub use {
    claim::{Claim, SAMPLES_BEYOND, Verdict, Verdicts},
    emulation::{EmulatedSystem, Emulation},
    error::Error,
    json::{read_json, read_text, write_json},
    labels::{LabelValue, Labels, distinct, is_part, labels, labels_with, labels_without},
    plot::{Plot, PlotKind, PublishedPoints, StatisticName},
    results::{EMULATED, ExperimentFailure, Results, SCHEMA, TimeUnit},
    rtorb_host::placement::{ObtainedScheduling, all_real_time},
    series::{Derived, Highlight, LostRound, Published, Series, WorstSample},
    table_view::{CellValue, PublishedRow, TableView},
};

//! Results of measurements: the file that scripts and people read, and what is made of it.
//!
//! [`Results`] is one run of one experiment. Its samples come in [`cells`], by labels and round; what is said about them is declared
//! ([`statements`]): [`Claim`]s are held, missed, not judged or not measured. From results alone come [`statistics`], comparisons of runs ([`compare`]), tables ([`summary`],
//! [`export`]) and the profile of a platform ([`profile`]). Nothing here measures, and nothing here knows an ORB.
#![forbid(unsafe_code)]

pub mod by_round;
pub mod campaign;
pub mod cells;
pub mod claim;
pub mod compare;
pub mod emulation;
pub mod error;
pub mod explanation;
pub mod export;
pub mod file;
pub mod judgement;
pub mod judgement_views;
pub mod labels;
pub mod metric;
mod pattern;
pub mod plot;
pub mod profile;
pub mod results;
pub mod runs;
pub mod series;
pub mod statements;
pub mod statistics;
pub mod summary;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
pub mod systems;
pub mod table_view;
pub mod timestamp;

pub use claim::{Claim, Verdict, Verdicts};
pub use emulation::{EmulatedSystem, Emulation};
pub use error::{Error, is_wrong_path};
pub use file::{read_text, write_atomically};
pub use labels::{LabelValue, Labels, labels, labels_with, labels_without};
pub use plot::{Plot, PlotKind, PublishedPoints, StatisticName};
pub use results::{EMULATED, Results, SCHEMA, TimeUnit};
pub use rtorb_host::placement::{ObtainedScheduling, all_real_time};
pub use series::{Derived, Highlight, LostRound, Published, Series, WorstSample};
pub use table_view::{CellValue, PublishedRow, TableView};

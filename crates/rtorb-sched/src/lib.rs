//! Priorities and response times of systems of tasks: what a scheduler assigns off line, and whether deadlines hold.
//!
//! Nothing here runs, waits or asks the host: numbers in, numbers out. Times are whole nanoseconds. A verdict comes from
//! exact arithmetic: what would overflow, or would take more steps than [`Limits`] allows, is told as undecided.
//!
//! | for | take | source |
//! |---|---|---|
//! | a task, and what is wrong with it | [`Task`] | |
//! | how much of the processor is used, and what follows | [`Utilisation`] | Liu & Layland 1973; Bini, Buttazzo & Buttazzo 2003 |
//! | levels from rates, deadlines, criticalities | [`Strategy`], [`levels`] | Liu & Layland 1973; Leung & Whitehead 1982; Stewart & Khosla 1991 |
//! | an order that works whenever one does | [`audsley`] | Audsley 1991 |
//! | worst response times, fixed priorities | [`response_times`] | Joseph & Pandya 1986; Lehoczky 1990; Audsley et al. 1993; Tindell, Burns & Wellings 1994 |
//! | the same where tasks start each other | [`response_times_in_chains`] | Tindell & Clark 1994 |
//! | the same over several processors, from end to end | [`holistic`](mod@holistic) | Tindell & Clark 1994; Spuri 1996; near Palencia & Gonzalez Harbour 1998 |
//! | whether earliest-deadline-first meets all deadlines | [`edf`] | Baruah, Rosier & Howell 1990; Zhang & Burns 2009 |
//! | how much longer steps may execute until a deadline breaks | [`sensitivity`] | Lehoczky, Sha & Ding 1989; Bini, Di Natale & Buttazzo 2008 |
//! | worst response times, earliest deadline first | [`edf::response_times`] | Spuri 1996 |
//! | operations that call each other, to tasks | [`CallGraph`] | |
//! | all of it at once | [`Schedule`] | |
//! | levels to priorities of a host | [`PriorityRange`] | |
//! | files of times and names, to messages with lines | [`toml_file`], [`times`] | |
//! | a whole system on its platforms | [`model`] | P3 |
#![forbid(unsafe_code)]

mod audsley;
mod chains;
pub mod edf;
mod graph;
pub mod holistic;
pub mod levels;
mod limits;
mod mapping;
pub mod model;
mod response;
mod schedule;
pub mod sensitivity;
mod task;
pub mod times;
pub mod toml_file;
mod utilisation;

pub use audsley::audsley;
pub use chains::response_times_in_chains;
pub use graph::{
    Activation, Call, CallGraph, GraphError, Kind, Operation, System, SystemTask, Way,
};
pub use holistic::holistic;
pub use levels::Strategy;
pub use limits::Limits;
pub use mapping::{InsufficientLevels, PriorityRange};
pub use response::{Response, response_times};
pub use schedule::{Anomaly, Dispatching, LevelInfo, Schedule, Scheduled, Severity, Verdict};
pub use task::{Criticality, Importance, Task, TaskError};
pub use utilisation::{Bound, Utilisation};

//! Schedulability analysis: priorities and response times of sets of tasks, computed off line.
//!
//! This crate runs nothing, waits for nothing and queries no host: numbers in, numbers out. Times are whole nanoseconds. Verdicts
//! rest on exact arithmetic: an analysis that would overflow, or would need more steps than [`SearchLimits`] allows, ends as
//! undecided.
//!
//! | for | use | source |
//! |---|---|---|
//! | a task and its checks | [`Task`] | |
//! | processor utilisation and its bounds | [`Utilisation`] | Liu & Layland 1973; Bini, Buttazzo & Buttazzo 2003 |
//! | levels by rate, deadline or criticality | [`Strategy`], [`levels`] | Liu & Layland 1973; Leung & Whitehead 1982; Stewart & Khosla 1991 |
//! | an optimal order of priorities | [`audsley`] | Audsley 1991 |
//! | worst response times, fixed priorities | [`response_times`] | Joseph & Pandya 1986; Lehoczky 1990; Audsley et al. 1993; Tindell, Burns & Wellings 1994 |
//! | the same with precedence between tasks | [`response_times_in_chains`] | Tindell & Clark 1994 |
//! | the same end to end, over several processors | [`holistic`](mod@holistic) | Tindell & Clark 1994; Spuri 1996; near Palencia & Gonzalez Harbour 1998 |
//! | data age and reaction time of cause-effect chains | [`cause_effect`] | Davare et al. 2007; Dürr et al. 2019; Günzel et al. 2023 |
//! | whether earliest-deadline-first meets all deadlines | [`edf`] | Baruah, Rosier & Howell 1990; Zhang & Burns 2009 |
//! | how much execution times may grow before a deadline is missed | [`sensitivity`] | Lehoczky, Sha & Ding 1989; Bini, Di Natale & Buttazzo 2008 |
//! | worst response times, earliest deadline first | [`edf::response_times`] | Spuri 1996 |
//! | operations that call each other, converted to tasks | [`CallGraph`] | |
//! | a complete schedule of a call graph | [`Schedule`] | |
//! | bursts, static offsets | [`Burst`], [`Phase`] | Tindell, Burns & Wellings 1994; near Palencia & Gonzalez Harbour 1998 |
//! | the blocking of a lane with few levels | [`edf::level_holders`] | Baker 1991 |
//! | whether a system may start, and what would help if not | [`admit`] | |
//! | whether a running system may change to another | [`Transition`] | near Tindell, Burns & Wellings 1992; Real & Crespo 2004 |
//! | levels mapped to priorities of a host | [`PriorityRange`] | |
//! | reading files, with errors that name the line | [`text_file`], [`times`] | |
//! | a system of components on measured platforms | [`model`] | P3 |
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![forbid(unsafe_code)]

mod admission;
mod arrivals;
mod audsley;
pub mod cause_effect;
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
mod stream;
mod task;
pub mod text_file;
pub mod times;
mod transition;
mod utilisation;

pub use admission::{Refusal, admit};
pub use arrivals::{Burst, Phase};
pub use audsley::audsley;
pub use chains::response_times_in_chains;
pub use graph::{
    CallGraph, CallKind, GraphError, GraphTask, Operation, OperationCall, OperationKind, Rate,
    TaskSet,
};
pub use holistic::holistic;
pub use levels::Strategy;
pub use limits::SearchLimits;
pub use mapping::{InsufficientLevels, PriorityRange};
pub use response::{Response, response_times};
pub use schedule::{
    Anomaly, Dispatching, LevelInfo, OperationSchedule, Schedule, Severity, Verdict,
};
pub use task::{Criticality, Importance, Task, TaskError};
pub use transition::{Mode, Transition};
pub use utilisation::{Bound, Utilisation};

//! The scheduling service (RtecScheduler): it computes priorities from rates, deadlines and criticalities, off line and at run
//! time.
//!
//! Off line: [`Description`] is a file of operations, and [`Schedule`] has the priorities, which ORBs and channels read at start.
//! At run time: [`Scheduling`] serves TAO's interface `RtecScheduler::Scheduler`; readers of priorities get the last computed
//! ones and never wait for writers.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rtorb_services::scheduling::Schedule;
//!
//! let schedule = Schedule::read("schedule.computed.toml")?;
//! let orb = rtorb::Orb::builder()
//!     .dispatch(rtorb::DispatchStrategy::Lanes)
//!     .lanes(schedule.lanes())
//!     .build()?;
//! let priority = schedule.priority("navigation").ok_or("navigation is not scheduled")?;
//! orb.rt_current().set_the_priority(priority)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`ClientScheduler`] and [`ServerScheduler`] give threads and objects the priorities of their names (RTCosScheduling).
//! [`serve_cancellation`] lets other processes cancel the distributable threads of this one.
//!
//! `rtorb-sched` does the analysis.

mod admission;
mod cancellation;
mod change;
mod config;
mod cos_scheduling;
mod description;
mod exception;
mod modelled_system;
mod priorities;
mod published;
mod remote;
mod schedule;
mod servant;
mod servants;
mod server_scheduler;
mod service;
mod state;
mod system_file;
mod table;

pub use cancellation::serve_cancellation;
pub use change::{DescribedSystem, NotAdmitted, SystemChange, SystemChangeError};
pub use config::{Admission, SchedulingConfig, SchedulingError};
pub use cos_scheduling::{ClientScheduler, CosSchedulingError};
pub use description::Description;
pub use modelled_system::ModelledSystem;
pub use remote::RemoteScheduler;
pub use schedule::{Computation, ComputeError, Level, Schedule, ScheduledOperation};
pub use servants::ServantSchedule;
pub use server_scheduler::ServerScheduler;
pub use service::Scheduling;

pub use rtorb_sched::text_file::FileErrors;
pub use rtorb_sched::times::{parse_ns, text_of_ns};

/// The analysis from which levels and verdicts come.
pub use rtorb_sched as analysis;

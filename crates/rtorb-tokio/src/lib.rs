//! Tasks of the runtime tokio as clients and servants of an rtorb ORB.
//!
//! * [`read_replies`] reads the replies of started calls in a task, so that other tasks can await calls without a thread of the ORB.
//! * [`TaskExecutor`] runs the calls of servants whose operations are `async`, on a runtime of the application, or on [`TaskLanes`]:
//!   threads of stated priority, one for each lane.
//!
//! A task is a heap object, and tokio's scheduler knows no priorities: among the tasks of one lane, the order is that of the runtime. Calls
//! whose deadline is shorter than the longest step of any task of their lane belong to an ordinary servant.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod executor;
mod lanes;
mod replies;

pub use executor::TaskExecutor;
pub use lanes::{TaskLane, TaskLanes};
pub use replies::read_replies;

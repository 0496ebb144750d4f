//! Clients of naming services: contexts of any server, plain names, and errors in words.

mod bindings;
mod bound_name;
mod context;
mod failure;
#[cfg(feature = "naming-load")]
mod line;
#[cfg(feature = "naming-load")]
mod load;
mod location;
mod name;
mod walk;

pub use bindings::Bindings;
pub use bound_name::BoundName;
pub use context::{Context, Existing};
pub use failure::{Failure, FailureReason};
#[cfg(feature = "naming-load")]
pub use line::{Line, LineError, Target};
#[cfg(feature = "naming-load")]
pub use load::{FailedLine, Load, LoadReport, Progress};
pub use location::{PORT, ServiceLocation};
pub use name::{Name, escape, format_name, parse_name};
pub use walk::{Inside, Step, Walk};

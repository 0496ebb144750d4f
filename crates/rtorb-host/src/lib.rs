//! The host of a measurement: its description, what stands in the way of real time ([`preflight`]), and on which CPU and with
//! which priority threads run ([`placement`]).
//!
//! Everything is read from /proc, /sys and /dev, or asked by netlink. What cannot be read is `None`, never a guess.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod connections;
pub mod cpu_use;
pub mod description;
pub mod idle_states;
pub mod kernel_trace;
pub mod netlink;
pub mod placement;
pub mod preflight;
pub mod system;

pub use description::Host;
pub use system::clock_identity;

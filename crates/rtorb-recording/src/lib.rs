//! Recordings of the calls of processes, and why calls in them were late.
//!
//! A [`Recording`] has what the recorders of some processes held, host by host, with the kernel's record of each host. [`gathering`]
//! makes it of running processes. [`perfetto`] writes it as a file that ui.perfetto.dev draws, and reads that file. [`joins`] finds the two ends of each call, and calls within
//! calls. [`activity`] says what threads did by the kernel's record. [`parts`] divides a call into times with causes, and [`late`] judges the
//! calls that were late. [`counters`] says what a process has called and served so far.
#![forbid(unsafe_code)]

pub mod activity;
pub mod counters;
pub mod gathering;
pub mod joins;
pub mod late;
pub mod limits;
pub mod parts;
pub mod perfetto;
pub mod records;

pub use records::{
    CallOutcome, CallRecord, CallSide, HostRecord, ProcessRecord, Recording, ThreadRecord,
    short_name,
};

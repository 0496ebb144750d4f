//! Priorities and response times of systems of tasks: what a scheduler assigns off line, and whether deadlines hold.
//!
//! Nothing here runs, waits or asks the host: numbers in, numbers out.
#![forbid(unsafe_code)]

//! What a client thread does until its reply is there.
//!
//! `read`: it reads from its own connection. `watchdog` ends a wait whose deadline has passed.

pub(crate) mod read;
pub(crate) mod watchdog;

//! What a client thread does until its reply is there.
//!
//! `read`: it reads from its own connection; `watchdog` ends a wait whose deadline has passed. On a connection that many
//! wait on, each has a `waiter`: by `reactor` a thread of the ORB reads for all, by `leader_followers` one of those who
//! wait.

pub(crate) mod leader_followers;
pub(crate) mod reactor;
pub(crate) mod read;
pub(crate) mod waiter;
pub(crate) mod watchdog;

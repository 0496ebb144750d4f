//! What a client thread does until its reply is there.
//!
//! `read`: it reads from its own connection.

pub(crate) mod read;

//! The serving side: from octets on a connection to a servant's method and back.
//!
//! `connection` reads messages and answers them, `upcall` finds servant and operation, `call` is what the generated
//! code sees of a request. Which thread does all that is the business of `dispatch`.

mod call;
mod connection;
mod listeners;
mod upcall;

pub use call::ServerCall;
pub(crate) use connection::{Served, ServedConnection};
pub(crate) use listeners::{Server, serve_to_the_end};
pub(crate) use upcall::is_in_upcall;

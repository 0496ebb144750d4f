//! The serving side: from octets on a connection to a servant's method and back.
//!
//! `reading` makes whole messages of octets, `answer` answers them, `upcall` finds servant and operation, `call` is what the
//! generated code sees of a request. A `session` is what all share who answer on a connection, a `workspace` what a thread
//! needs for answering; a `request` may be taken out of its connection. Which thread does all that is the business of
//! `dispatch`.

mod answer;
mod call;
mod closing;
mod connection;
mod core;
mod event_loop;
mod listeners;
mod manager_state;
mod names;
pub(crate) mod object_key;
mod object_table;
mod reading;
mod request;
mod servant;
mod session;
mod thread_priority;
mod upcall;
mod workspace;

pub use call::ServerCall;
pub(crate) use connection::{Served, ServedConnection};
pub(crate) use core::{ServerCore, ServerState, bind, not_opened};
pub(crate) use event_loop::{Event, EventLoop, EventRoom, Readiness, Token, Trigger};
pub(crate) use listeners::{Admission, Server, refuse};
pub(crate) use manager_state::ManagerState;
pub use manager_state::PoaManagerState;
pub(crate) use names::{LocatedId, NameCache, Unbindable};
pub(crate) use object_table::{ActiveObject, ObjectTable};
pub(crate) use reading::{Next, Reading};
pub(crate) use request::TakenRequest;
pub use servant::unknown_operation;
pub(crate) use servant::{ObjectAdapter, Servant};
pub(crate) use session::Session;
pub(crate) use thread_priority::ThreadPriority;
pub(crate) use upcall::{is_in_servant, is_in_upcall, is_serving_own, propagated};
pub(crate) use workspace::Workspace;

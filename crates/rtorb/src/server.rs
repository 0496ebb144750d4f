//! The server side: from bytes on a connection to a servant's method and back.
//!
//! `bidirectional` is the half of a connection over which this ORB calls too. `reading` receives messages and `answer` handles them. For
//! a request, `target` finds the object, and `upcall` is this ORB's part of the engine in `rtorb_core::upcall`, which calls the servant.
//! `intercepted` calls the interceptors before and after, if there are any. `held_requests` has those whose manager holds them. `call` is the request for generated code. `cancellation` has
//! cancelled
//! requests. `buffers` is the pool of receive buffers. A `session` is the state of a connection that all its threads share, a
//! `workspace` is the memory of a serving thread, and a `request` can be taken out of its connection. `dispatch` chooses the
//! threads. `stranger_turns` is the budget of clients of which no message has been served yet. `responder` is a reply that a servant sends later, and `deferred_replies` has all of an ORB. `collocated` serves a request of
//! the same ORB on the calling thread, without a connection, and `local_object` calls a servant there without a request.

mod answer;
mod bidirectional;
mod buffers;
mod call;
mod cancellation;
mod client_watch;
mod closing;
pub(crate) mod collocated;
mod connection;
mod connection_counts;
mod current_call;
mod deferred_replies;
mod event_loop;
mod held_requests;
mod intercepted;
mod listeners;
mod local_object;
mod looks;
mod manager_state;
mod names;
pub(crate) mod object_key;
mod object_table;
mod reading;
mod request;
mod responder;
mod servant;
mod server_core;
mod session;
mod stranger_turns;
mod target;
mod task_servant;
mod thread_priority;
mod upcall;
mod workspace;

pub(crate) use crate::poller::{EventRoom, Token};
pub(crate) use buffers::Buffers;
pub use call::{PassThrough, ServerCall};
pub(crate) use connection::ServedConnection;
pub use connection_counts::ConnectionCounts;
pub use current_call::CurrentCall;
pub(crate) use deferred_replies::DeferredReplies;
pub use deferred_replies::DeferredReplyCounts;
pub(crate) use event_loop::{Event, EventLoop, Readiness};
pub(crate) use held_requests::HeldRequests;
pub(crate) use listeners::{Admission, GIVING_WAY_MAX, Look, Server, refuse};
pub(crate) use local_object::{LocalObject, servant_panicked};
pub(crate) use manager_state::ManagerState;
pub use manager_state::PoaManagerState;
pub(crate) use names::{LocatedId, NameCache, Unbindable};
pub(crate) use object_table::{ActiveObject, ObjectTable};
pub(crate) use reading::{Next, Reading};
pub(crate) use request::TakenRequest;
pub use responder::{DeferReply, Deferring, Responder, WriteResult};
pub(crate) use servant::{AdapterActivation, EnclosingAdapter, ObjectAdapter, Servant};
pub(crate) use server_core::{ServerCore, ServerState, bind, next_upcall, not_opened};
pub(crate) use session::Session;
pub(crate) use stranger_turns::{StrangerTurns, await_turn};
pub use task_servant::{Executor, TaskServant};
pub(crate) use thread_priority::ThreadPriority;
pub(crate) use upcall::{is_in_servant, is_in_upcall, propagated, site};
pub(crate) use workspace::Workspace;

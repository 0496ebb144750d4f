//! The GIOP connection without I/O: bytes in, messages and events out, bytes to send out.
//!
//! Nothing here knows a socket, a thread or a clock. A driver moves the bytes: it receives into [`Receiver::free`], asks
//! for the next message, and sends what a transport did not take from an [`Outbox`].

mod client;
mod deadline;
mod outbox;
mod pending;
mod reassembly;
mod receiver;
mod server;
mod server_connection;

pub use client::{ClientState, Reply, ReplyError};
pub use deadline::{Deadline, timeout_ns};
pub use outbox::{Outbox, OutboxError};
pub use pending::Pending;
pub use receiver::{Message, ReceiveError, ReceiveLimits, Receiver, Side};
pub use server::CodeSetState;
pub use server_connection::{ServerConnection, ServerPhase};

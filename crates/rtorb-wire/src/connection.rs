//! The GIOP connection without I/O: bytes in, messages and events out, bytes to send out.
//!
//! Nothing here knows a socket, a thread or a clock. A driver moves the bytes: it receives into [`Receiver::free`], asks
//! for the next message, and sends what a transport did not take from an [`Outbox`].

mod outbox;
mod receiver;

pub use outbox::{Outbox, OutboxError};
pub use receiver::{Message, ReceiveError, ReceiveLimits, Receiver, Side};

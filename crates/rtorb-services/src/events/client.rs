//! Clients of a channel: a supplier that pushes events, and a receiver that queues them for a thread.

mod connect;
mod inbox;
mod receiver;
mod supplier;

pub use connect::{ConnectError, channel, channel_of};
#[cfg(feature = "event-channel")]
pub(crate) use connect::{
    connect_consumer, connect_supplier, consumer_refused, discard_push_consumer, is_there,
};
pub use inbox::{Arrival, Received};
pub use receiver::Receiver;
pub use supplier::Supplier;

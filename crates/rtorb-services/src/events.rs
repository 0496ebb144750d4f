//! The real-time event channel: it filters, correlates and dispatches events from suppliers to consumers by priority.

// Only a change of a schedule reorders a channel, and without schedules nothing asks for it.
#![cfg_attr(not(feature = "scheduling"), allow(dead_code))]

#[cfg(feature = "event-channel")]
mod admin;
#[cfg(feature = "event-channel")]
mod channel;
#[cfg(feature = "event-channel")]
mod channel_core;
pub mod client;
#[cfg(feature = "event-channel")]
mod config;
#[cfg(feature = "event-channel")]
mod connection;
#[cfg(feature = "event-channel")]
mod consumer;
#[cfg(feature = "event-channel")]
mod counting;
#[cfg(feature = "event-channel")]
mod dispatch;
mod event;
#[cfg(feature = "event-channel")]
pub mod filter;
#[cfg(not(feature = "event-channel"))]
pub mod filter {
    //! The types of events that have a meaning of their own.

    pub mod types;
}
#[cfg(feature = "event-channel")]
pub mod gateway;
#[cfg(feature = "event-channel")]
mod intake;
#[cfg(feature = "event-channel")]
mod keeper;
#[cfg(feature = "event-channel")]
mod lane;
#[cfg(feature = "event-channel")]
mod lane_thread;
#[cfg(feature = "event-channel")]
mod mailbox;
pub mod numbering;
#[cfg(feature = "event-channel")]
mod observers;
#[cfg(feature = "event-channel")]
pub mod plain;
#[cfg(feature = "event-channel")]
mod priority_source;
#[cfg(feature = "event-channel")]
mod proxies;
pub mod pushing;
#[cfg(feature = "event-channel")]
mod queue;
#[cfg(feature = "event-channel")]
mod registry;
#[cfg(feature = "event-channel")]
mod reorder;
pub mod simple_subscription;
#[cfg(feature = "event-channel")]
pub mod statistics;
pub mod subscribe;
#[cfg(feature = "event-channel")]
pub mod subscriptions;
#[cfg(feature = "event-channel")]
mod supplier;
#[cfg(feature = "event-channel")]
mod timer_queue;
#[cfg(feature = "event-channel")]
mod wake_signal;

#[cfg(feature = "event-channel")]
pub use channel::{CannotReorder, Channel, strategies};
#[cfg(feature = "scheduling")]
pub(crate) use channel_core::ChannelCore;
#[cfg(feature = "event-channel")]
pub use config::{ChannelConfig, ChannelError, Dispatching, EVENT_BYTES_MIN, LANES_MAX, WhenFull};
#[cfg(feature = "event-channel")]
pub use counting::statistics_of;
#[cfg(feature = "event-channel")]
pub use priority_source::{
    DispatchOrder, EventFlow, FlowAdmission, PrioritySource, RtInfoIsPriority, Urgency,
    UrgencyError,
};
#[cfg(feature = "event-channel")]
pub use statistics::Statistics;

pub use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};

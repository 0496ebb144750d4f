//! The real-time event channel: events from suppliers to consumers, filtered, correlated, and dispatched by priority.

mod admin;
mod agenda;
mod channel;
pub mod client;
mod config;
mod consumer;
mod counting;
mod dispatch;
mod doorbell;
mod event;
pub mod filter;
pub mod gateway;
mod hub;
mod intake;
mod keeper;
mod lane;
pub mod numbering;
mod observers;
mod outlet;
pub mod plain;
mod priority_source;
pub mod pushing;
mod queue;
pub mod statistics;
pub mod subscribe;
pub mod subscriptions;
mod supplier;
pub mod wish;

pub use channel::{Channel, strategies};
pub use config::{ChannelConfig, ChannelError, Dispatching, LANES_MAX, WhenFull};
pub use counting::statistics_of;
pub use priority_source::{DispatchOrder, PrioritySource, RtInfoIsPriority, Urgency, UrgencyError};
pub use statistics::Statistics;

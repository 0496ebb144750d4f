//! The real-time event channel: events from suppliers to consumers, filtered, correlated, and dispatched by priority.

pub mod client;
pub mod filter;
pub mod gateway;
pub mod numbering;
#[cfg_attr(not(test), expect(dead_code, reason = "the channel takes it in"))]
mod observers;
pub mod plain;
pub mod pushing;
pub mod subscribe;
pub mod subscriptions;
pub mod wish;

//! The real-time event channel: events from suppliers to consumers, filtered, correlated, and dispatched by priority.

pub mod client;
pub mod filter;
pub mod gateway;
pub mod numbering;
pub mod subscriptions;

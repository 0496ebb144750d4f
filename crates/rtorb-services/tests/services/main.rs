//! The services through their references, as clients see them.

mod changes;
mod cos_scheduling;
mod events;
mod live_server;
mod location;
mod naming;
mod scheduling;
mod subscriptions;
mod timeouts;

//! The services through their references, as clients see them.

mod changes;
mod events;
mod naming;
mod scheduling;
mod subscriptions;

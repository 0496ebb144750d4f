//! The services through their references, as clients see them.

mod changes;
mod cos_scheduling;
mod events;
mod naming;
mod scheduling;
mod subscriptions;

//! The services through their references, as clients see them.

mod cos_scheduling;
mod events;
mod naming;
mod scheduling;
mod subscriptions;

//! The event channel through real ORBs: what goes in comes out, in order, and every event is accounted for.

mod delivery;
mod faults;
mod gateways;
mod plain;
mod resubscribing;
pub(crate) mod setup;

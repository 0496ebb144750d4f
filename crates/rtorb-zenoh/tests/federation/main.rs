//! Channels that a federation joins, over TCP on loopback.

mod bad_input;
mod crossing;
mod interruptions;
mod relay;
mod setup;
mod stranger;

//! Values, messages and connections as bytes: recorded, random and hostile ones.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod any;
mod connection;
#[path = "../decoders/mod.rs"]
mod decoders; // of the fuzz targets too
mod exhaustive;
mod expiry;
mod golden_giop;
mod golden_values;
mod hostile;
mod properties;
mod recorded;
mod server_connection;
mod streams;

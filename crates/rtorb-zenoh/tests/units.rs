//! The unit tests of this crate. A target of its own has them, because cargo would build Zenoh for those of the library in every
//! `cargo test --workspace`.
#![forbid(unsafe_code)]
#![allow(dead_code, unreachable_pub, reason = "the library exports it")]

#[path = "../src/accounts.rs"]
mod accounts;
#[path = "../src/bands.rs"]
mod bands;
#[path = "../src/config.rs"]
mod config;
#[path = "../src/connection.rs"]
mod connection;
#[path = "../src/federation.rs"]
mod federation;
#[path = "../src/incoming.rs"]
mod incoming;
#[path = "../src/keys.rs"]
mod keys;
#[path = "../src/message.rs"]
mod message;
#[path = "../src/numbers.rs"]
mod numbers;
#[path = "../src/outgoing.rs"]
mod outgoing;
#[path = "../src/session.rs"]
mod session;
#[path = "../src/shared.rs"]
mod shared;
#[path = "../src/statistics.rs"]
mod statistics;
#[path = "../src/work_queue.rs"]
mod work_queue;

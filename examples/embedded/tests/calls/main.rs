//! Embedded servers and clients that call each other, and the full ORB, and omniORB.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cubit;
mod desk;
mod guests;
mod idle;
mod late;
mod link;
mod periods;

//! Values, requests and servants whose types are known only at run time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod calls;
mod deferring;
mod depth;
mod idl4_json;
mod json;
mod passing;
mod proxy;
mod wrong_json;

//! Real calls through every construct of the IDL mapping, and to servers that are processes of their own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abstract_interfaces;
mod ami;
mod anys;
mod bits;
mod chains;
mod common;
mod constants;
mod context;
mod distributable_threads;
mod echo;
mod exhaustion;
mod failures;
mod inheritance;
mod local;
mod mapping;
mod maps;
mod names;
mod nested_priority;
mod optional;
mod properties;
mod raw;
mod references;
mod refused_servants;
mod server_threads;
mod shared_memory;
mod started;
mod system_calls;
mod templates;
mod timing;
mod value_forms;
mod valuetypes;

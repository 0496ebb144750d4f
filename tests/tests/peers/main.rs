//! The ORB and its services with other ORBs, as client and as server of each.

mod bidirectional;
mod client_strategies;
mod deadlines;
mod distributable_threads;
mod dynamic_calls;
mod dynamic_servants;
mod events_omniorb;
mod jacorb;
mod jdk;
mod matrix;
mod messaging;
mod naming;
mod omniorb_calls_us;
mod our_names;
mod recorded_sessions;
mod refusals;
mod routes;
mod rt_interop;
mod rt_references;
mod scheduling;
mod tango;
mod tao;
mod threads;
mod values;
mod we_call_omniorb;

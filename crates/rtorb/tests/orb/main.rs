//! The ORB by its public API: calls over sockets between ORBs of this process, and raw peers that are right or wrong.
//!
//! One program, because each program of the workspace is linked with all of the ORB. Tests that count what the whole process
//! does, or look at all of its threads, are not here.

mod adapters;
mod addressing;
mod bands;
mod bidirectional;
mod call_deadlines;
mod cancelled_calls;
mod client_faults;
mod collocated;
mod connection_limits;
mod connection_thread;
mod deadline_lanes;
mod deferred_replies;
mod dispatch_conformance;
mod distributable_threads;
mod enforcement;
mod inherited_sockets;
mod interceptors;
mod lane_threads;
mod live_changes;
mod local_exceptions;
mod object_keys;
mod ourselves;
mod poa_managers;
mod pools;
mod presets;
mod published;
mod reply_handlers;
mod request_queues;
mod requirements;
mod rt_adapters;
mod rt_propagation;
mod rt_upcalls;
mod scribbled_segments;
mod segments;
mod servant_managers;
mod server_faults;
mod shared_memory;
mod slow_clients;
mod started_calls;
mod strangers;
mod sync_none;
mod thread_policies;
mod timing;
mod unusual;

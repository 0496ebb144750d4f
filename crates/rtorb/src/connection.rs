//! The client side of connections: drivers of the engine in [`rtorb_wire::connection`].
//!
//! `exclusive`: each client thread has its own connection to an endpoint, and waits for no other thread. `multiplexed`: all
//! client threads share one connection. `banded` maps each priority to one of several connections, so that
//! `multiplexed` has one for each band.
//!
//! `bidirectional` connections carry calls of both ends.
//!
//! `collocated` calls an object of the same ORB on the calling thread, without a connection.
//!
//! `single` is a connection that one thread at a time uses, `shared` one on which many threads wait at once. `opening` opens
//! the stream of both. `client` has the state that all connections share. An `invocation` is one call by one `route`; `reply`
//! has the ways in which it ends. A `send_queue` has the requests of a shared connection whose own thread sends.
//! `without_waiting` sends oneways that wait for nothing over `single` connections. `started` sends requests over `shared` ones whose
//! replies are read later.

pub(crate) mod banded;
mod bidirectional;
mod client;
mod collocated;
mod exclusive;
mod invocation;
mod multiplexed;
mod opening;
mod reply;
mod route;
mod send_queue;
mod shared;
mod single;
pub(crate) mod started;
pub(crate) mod without_waiting;

pub(crate) use bidirectional::{BidirectionalConnection, BidirectionalTable, RequestCarrier};
pub(crate) use client::{Client, ClientCore, CollocatedRequest, EnclosingOrb, Sharing, WeakClient};
pub(crate) use collocated::may_be_collocated;
pub(crate) use invocation::{AddedContexts, Arguments, Invocation, InvocationKind};
pub(crate) use reply::{Outcome, Results};
pub(crate) use route::{EndpointKey, EndpointTable, Route, SharedEndpoint};

use crate::exception::SystemException;
use crate::realtime::{NetworkPriority, PriorityBand};

/// A connection that was idle for longer is checked before a call uses it: its server may have ended meanwhile. This is one
/// system call a second at most, and a server takes longer to restart.
const IDLE_NS: u64 = 1_000_000_000;

/// Identifies one of the connections to an endpoint: the one that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channel {
    /// The CORBA priorities of its calls; none where all calls share one connection.
    pub(crate) band: Option<PriorityBand>,
    /// The marks of its packets; none where they are not marked.
    pub(crate) marks: Option<NetworkPriority>,
}

impl Channel {
    /// The channel of calls that need no connection of their own priority.
    pub(crate) const ANY: Self = Self {
        band: None,
        marks: None,
    };
}

/// Invokes an object by one route: sends a request and, if a reply is expected, waits for it.
// Always: it is in the path of every call, and has one caller.
#[inline(always)]
pub(crate) fn call<'a>(
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, SystemException> {
    if collocated::is_permitted(invocation) {
        return collocated::call(invocation, arguments, results);
    }
    match &invocation.core.sharing {
        Sharing::Exclusive => exclusive::call(invocation, arguments, results),
        Sharing::Multiplexed(shared) | Sharing::Banded(shared) => {
            multiplexed::call(shared, invocation, arguments, results)
        }
        Sharing::Bidirectional(table) => bidirectional::call(table, invocation, arguments, results),
    }
}

//! The bidirectional connections of an ORB, by the addresses to which they lead.

use super::super::invocation::Invocation;
use super::super::multiplexed::locked;
use super::super::{Channel, opening};
use super::BidirectionalConnection;
use crate::endpoint::Endpoint;
use crate::exception::SystemException;
use rtorb_os::sync::Mutex;
use rtorb_wire::connection::ReplyError;
use rtorb_wire::giop::Version;
use rtorb_wire::ior::ListenPoint;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The bidirectional connections of an ORB.
#[derive(Debug, Default)]
pub(crate) struct BidirectionalTable {
    addresses: Mutex<KnownAddresses>,
}

#[derive(Debug, Default)]
struct KnownAddresses {
    connections: HashMap<Endpoint, Arc<BidirectionalConnection>>,
    /// Locks, each of which is held by the thread that opens a connection to that address.
    opening: HashMap<Endpoint, Weak<Mutex<()>>>,
    /// True once the ORB is shut down.
    is_closed: bool,
}

/// The most listen points of one connection. Further ones are ignored.
const POINTS_MAX: usize = 16;

impl BidirectionalTable {
    /// Returns the connection for an invocation, and whether it is new. Opens one if there is none. `None` if the invocation has no such
    /// connection: it does not use GIOP 1.2 over TCP, it needs a connection of its own, or this ORB has no address to offer.
    pub(super) fn connection(
        &self,
        invocation: &Invocation<'_>,
    ) -> Result<Option<(Arc<BidirectionalConnection>, bool)>, SystemException> {
        let endpoint = &invocation.route.endpoint;
        if invocation.route.version < Version::V1_2 {
            return Ok(None);
        }
        let fits = |known: &Arc<BidirectionalConnection>| {
            !known.is_opened_here()
                || is_plain(invocation) && known.char_code_set() == endpoint.char_code_set
        };
        if let Some(known) = self.find(&endpoint.endpoint) {
            return Ok(fits(&known).then_some((known, false)));
        }
        if !is_plain(invocation) {
            return Ok(None);
        }
        let listen_points = invocation.client.host.listen_points();
        if listen_points.is_empty() {
            return Ok(None);
        }
        let Some(opening) = self.opening(&endpoint.endpoint) else {
            return Ok(None);
        };
        let _opening = locked(&opening, invocation)?;
        if let Some(known) = self.find(&endpoint.endpoint) {
            return Ok(fits(&known).then_some((known, false)));
        }
        let stream = opening::open(invocation)?;
        let data = to_data(&listen_points).into();
        let opened = (invocation.client.host).serve_opened(stream, &mut |carrier| {
            BidirectionalConnection::opened(carrier, invocation, Arc::clone(&data))
        })?;
        let is_kept = self.insert(&endpoint.endpoint, &opened);
        if !is_kept {
            opened.end(ReplyError::ClosedBefore);
            opened.leave();
        }
        Ok(Some((opened, true)))
    }

    /// Returns the open connection that leads to an address.
    fn find(&self, endpoint: &Endpoint) -> Option<Arc<BidirectionalConnection>> {
        let addresses = self.addresses.lock();
        let known = addresses.connections.get(endpoint).map(Arc::clone);
        drop(addresses);
        known.filter(|known| known.is_open())
    }

    /// Returns the lock of the thread that opens a connection to an address; `None` once the ORB is shut down.
    fn opening(&self, endpoint: &Endpoint) -> Option<Arc<Mutex<()>>> {
        let mut addresses = self.addresses.lock();
        if addresses.is_closed {
            return None;
        }
        let opening = &mut addresses.opening;
        opening.retain(|_, held| held.strong_count() > 0);
        let held = opening.get(endpoint).and_then(Weak::upgrade);
        Some(held.unwrap_or_else(|| {
            let held = Arc::default();
            opening.insert(endpoint.clone(), Arc::downgrade(&held));
            held
        }))
    }

    /// Adds a connection that this ORB has opened. Returns false once the ORB is shut down.
    fn insert(&self, endpoint: &Endpoint, opened: &Arc<BidirectionalConnection>) -> bool {
        let mut addresses = self.addresses.lock();
        if !addresses.is_closed {
            addresses
                .connections
                .insert(endpoint.clone(), Arc::clone(opened));
        }
        !addresses.is_closed
    }

    /// Makes calls to the listen points of a client use its connection. The last client that names an address gets its calls, unless
    /// this ORB has opened a connection to that address itself.
    pub(crate) fn claim(
        &self,
        points: Vec<ListenPoint>,
        connection: &Arc<BidirectionalConnection>,
    ) {
        let mut addresses = self.addresses.lock();
        if addresses.is_closed {
            return;
        }
        let of_it = |known: &&Arc<_>| Arc::ptr_eq(known, connection);
        let claimed = addresses.connections.values().filter(of_it).count();
        for ListenPoint { host, port } in
            points.into_iter().take(POINTS_MAX.saturating_sub(claimed))
        {
            let endpoint = Endpoint::Tcp { host, port };
            let known = addresses.connections.get(&endpoint);
            if known.is_none_or(|known| !(known.is_opened_here() && known.is_open())) {
                addresses
                    .connections
                    .insert(endpoint, Arc::clone(connection));
            }
        }
    }

    /// Removes a connection that has ended.
    pub(crate) fn forget(&self, connection: &Arc<BidirectionalConnection>) {
        let connections = &mut self.addresses.lock().connections;
        connections.retain(|_, known| !Arc::ptr_eq(known, connection));
    }

    /// Ends all calls, and opens no more connections, because the ORB is shut down: no thread reads replies any longer.
    pub(crate) fn close(&self) {
        let connections = {
            let mut addresses = self.addresses.lock();
            addresses.is_closed = true;
            core::mem::take(&mut addresses.connections)
        };
        for connection in connections.values() {
            connection.end(ReplyError::Ended);
        }
    }
}

/// Returns true if an invocation needs no connection of its own reference or priority.
fn is_plain(invocation: &Invocation<'_>) -> bool {
    let endpoint = &invocation.route.endpoint;
    let is_tcp = matches!(*endpoint.endpoint, Endpoint::Tcp { .. });
    is_tcp && !endpoint.is_private && invocation.channel == Channel::ANY
}

/// Encodes the service context with the listen points. Every address can be encoded, because references contain it too.
fn to_data(points: &Vec<ListenPoint>) -> Vec<u8> {
    rtorb_wire::giop::contexts::to_data(points).unwrap_or_default()
}

//! Routes to objects, and the endpoints at their ends.

use super::multiplexed::SharedConnections;
use crate::endpoint::Endpoint;
use crate::realtime::{Priority, Protocol};
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{RequestPrefix, Version};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// One route to an object: an endpoint of a profile, and what that profile says.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) endpoint: Arc<SharedEndpoint>,
    pub(crate) version: Version,
    pub(crate) object_key: Arc<[u8]>,
    /// The beginning of each request, where the version allows to make that once.
    pub(crate) prefix: Option<Arc<RequestPrefix>>,
    /// The CORBA priority of the lane behind it, where the reference has it.
    pub(crate) priority: Option<Priority>,
}

/// An endpoint as references and connections of one ORB share it.
#[derive(Debug)]
pub(crate) struct SharedEndpoint {
    pub(crate) endpoint: Arc<Endpoint>,
    /// The code set of `char` data there.
    //= CORBA 3 §13.10.2.5
    //# A connection has one code set: references that do not agree on it have different connections.
    pub(crate) char_code_set: CharCodeSet,
    /// How connections there are set up, where a policy says so.
    pub(crate) protocol: Option<Protocol>,
    /// True if it belongs to one reference and is not in the table (PrivateConnectionPolicy).
    pub(crate) is_private: bool,
    /// The connections that client threads share.
    pub(crate) connections: SharedConnections,
}

/// The properties that identify a shared endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EndpointKey {
    pub(crate) endpoint: Endpoint,
    pub(crate) char_code_set: CharCodeSet,
    pub(crate) protocol: Option<Protocol>,
}

/// The endpoints that references in use lead to, so that those to one server share a thread's connection.
#[derive(Debug, Default)]
pub(crate) struct EndpointTable {
    endpoints: Mutex<HashMap<EndpointKey, Weak<SharedEndpoint>>>,
}

/// Endpoints beyond this many make the table forget those that no reference has any more.
const PURGE_AT: usize = 256;

impl EndpointTable {
    /// The endpoint of that key, which all references share.
    pub(crate) fn share(&self, key: EndpointKey) -> Arc<SharedEndpoint> {
        let mut endpoints = self.endpoints.lock();
        if let Some(shared) = endpoints.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        if endpoints.len() >= PURGE_AT {
            endpoints.retain(|_, shared| shared.strong_count() > 0);
        }
        let shared = Arc::new(SharedEndpoint::new(&key, false));
        endpoints.insert(key, Arc::downgrade(&shared));
        shared
    }
}

impl SharedEndpoint {
    /// The endpoint of that key, outside of the table.
    pub(crate) fn new(key: &EndpointKey, is_private: bool) -> Self {
        Self {
            endpoint: Arc::new(key.endpoint.clone()),
            char_code_set: key.char_code_set,
            protocol: key.protocol,
            is_private,
            connections: SharedConnections::default(),
        }
    }
}

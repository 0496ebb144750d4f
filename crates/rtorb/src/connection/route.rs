//! Routes to objects, and their endpoints.

use super::multiplexed::SharedConnections;
use crate::endpoint::{Endpoint, is_on_this_host};
use crate::realtime::{Priority, Protocol};
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::ClientState;
use rtorb_wire::giop::{Address, AddressingMode, RequestPrefix, Version};
use rtorb_wire::ior::{Ior, TaggedProfile};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// One route to an object: an endpoint of a profile, with the data of that profile.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) endpoint: Arc<SharedEndpoint>,
    pub(crate) version: Version,
    pub(crate) object_key: Arc<[u8]>,
    /// The index of its profile in the reference.
    pub(crate) profile: u32,
    /// The target address in requests instead of the object key, if the server requires one. Then there is no `prefix`.
    pub(crate) address: Option<Arc<WholeAddress>>,
    /// The encoded beginning of each request, if the GIOP version allows encoding it in advance.
    pub(crate) prefix: Option<Arc<RequestPrefix>>,
    /// True if it is an endpoint of this ORB whose requests the calling thread may serve.
    pub(crate) is_own: bool,
    /// True if the calling thread serves the requests of this reference: its timeout also allows that.
    pub(crate) is_collocated: bool,
    /// The timeout of this reference's calls in nanoseconds, for a collocated call that waits; `u64::MAX` for none.
    pub(crate) timeout_ns: u64,
    /// The CORBA priority of the endpoint's lane, if the reference contains it.
    pub(crate) priority: Option<Priority>,
    /// True if a request contains its deadline as an end time; false if it contains the remaining time.
    pub(crate) tells_end_time: bool,
}

/// An address of an object that is more than its key.
#[derive(Debug)]
pub(crate) enum WholeAddress {
    Profile(TaggedProfile),
    Reference { selected: u32, ior: Ior },
}

impl Route {
    /// Uses that form of target address in later requests. `ior` is the reference of the route.
    pub(crate) fn readdress(&mut self, mode: AddressingMode, ior: &Ior) {
        self.prefix = None;
        self.address = match mode {
            AddressingMode::Key => None,
            AddressingMode::Profile => {
                let profile = ior.profiles.get(self.profile as usize).cloned();
                profile.map(WholeAddress::Profile).map(Arc::new)
            }
            AddressingMode::Reference => Some(Arc::new(WholeAddress::Reference {
                selected: self.profile,
                ior: ior.clone(),
            })),
        };
    }

    /// Returns the target address in requests instead of the object key.
    pub(super) fn address(&self) -> Option<Address<'_>> {
        Some(match &**self.address.as_ref()? {
            WholeAddress::Profile(profile) => Address::Profile(profile),
            WholeAddress::Reference { selected, ior } => Address::Reference {
                selected: *selected,
                ior,
            },
        })
    }
}

/// An endpoint that references and connections of one ORB share.
#[derive(Debug)]
pub(crate) struct SharedEndpoint {
    pub(crate) endpoint: Arc<Endpoint>,
    /// The code set of `char` data of its connections.
    //= CORBA 3 §13.10.2.5
    //# A connection has one code set: references that do not agree on it have different connections.
    pub(crate) char_code_set: CharCodeSet,
    /// True if the first requests of its connections name the code sets.
    pub(crate) names_code_sets: bool,
    /// The socket properties of its connections, if a policy sets them.
    pub(crate) protocol: Option<Protocol>,
    /// True if it is on this host.
    pub(crate) is_on_this_host: bool,
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
    pub(crate) names_code_sets: bool,
    pub(crate) protocol: Option<Protocol>,
}

/// The endpoints of the references in use. References to one server share its connections.
#[derive(Debug, Default)]
pub(crate) struct EndpointTable {
    endpoints: Mutex<HashMap<EndpointKey, Weak<SharedEndpoint>>>,
}

/// If the table has this many endpoints, it drops the endpoints that no reference uses.
const PURGE_AT: usize = 256;

impl EndpointTable {
    /// Returns the shared endpoint of a key.
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
    /// Makes the engine's state of a new connection.
    pub(crate) const fn client_state(&self) -> ClientState {
        if self.names_code_sets {
            ClientState::naming_code_sets()
        } else {
            ClientState::new()
        }
    }

    /// Returns the key of the same endpoint, with connections of that code set.
    #[cold]
    pub(crate) fn key_with(
        &self,
        char_code_set: CharCodeSet,
        names_code_sets: bool,
    ) -> EndpointKey {
        EndpointKey {
            endpoint: (*self.endpoint).clone(),
            char_code_set,
            names_code_sets,
            protocol: self.protocol,
        }
    }

    /// Makes an endpoint that is not in the table.
    pub(crate) fn new(key: &EndpointKey, is_private: bool) -> Self {
        Self {
            endpoint: Arc::new(key.endpoint.clone()),
            char_code_set: key.char_code_set,
            names_code_sets: key.names_code_sets,
            protocol: key.protocol,
            is_on_this_host: is_on_this_host(&key.endpoint),
            is_private,
            connections: SharedConnections::default(),
        }
    }
}

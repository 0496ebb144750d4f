//! The security mechanisms of an object (CSIv2, CORBA 3 §24.5): which transport, and what a client says of itself in each request.

use super::components::{Component, ListenPoint, TaggedComponent};
use crate::cdr::cdr_struct;
use alloc::vec::Vec;

cdr_struct! {
    /// The ways to reach an object with security, best first.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CsiSecMechList {
        /// True if the server keeps the contexts of clients.
        pub stateful: bool,
        /// The mechanisms.
        pub mechanisms: Vec<CompoundSecMech>,
    }

    /// A way to reach an object.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CompoundSecMech {
        /// The [association options](super::association) that it requires of a client, in all layers.
        pub requires: u16,
        /// The transport: [`component_tag::TLS_SEC_TRANS`](super::component_tag::TLS_SEC_TRANS), or another component.
        pub transport: TaggedComponent,
        /// Authentication of the client in requests, such as by a password.
        pub authentication: AuthenticationLayer,
        /// Attributes of the client in requests, such as on whose behalf it calls.
        pub attributes: AttributeLayer,
    }

    /// Authentication of a client in requests (`AS_ContextSec`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AuthenticationLayer {
        /// The options that the server supports.
        pub supports: u16,
        /// The options that it requires.
        pub requires: u16,
        /// The object identifier of the mechanism.
        pub mechanism: Vec<u8>,
        /// The name of the server in that mechanism.
        pub target: Vec<u8>,
    }

    /// Attributes of a client in requests (`SAS_ContextSec`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AttributeLayer {
        /// The options that the server supports.
        pub supports: u16,
        /// The options that it requires.
        pub requires: u16,
        /// The authorities whose attributes it accepts.
        pub authorities: Vec<PrivilegeAuthority>,
        /// The object identifiers of the mechanisms of names.
        pub naming_mechanisms: Vec<Vec<u8>>,
        /// The types of names (bits).
        pub identity_types: u32,
    }

    /// An authority of attributes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PrivilegeAuthority {
        /// The syntax of its name.
        pub syntax: u32,
        /// Its name.
        pub name: Vec<u8>,
    }
}

impl CsiSecMechList {
    /// Returns the addresses over TLS of the mechanisms that need nothing in requests, best first.
    pub fn tls_addresses(&self) -> impl Iterator<Item = ListenPoint> {
        let usable = self.mechanisms.iter().filter(|mechanism| {
            mechanism.authentication.requires == 0 && mechanism.attributes.requires == 0
        });
        usable.flat_map(
            |mechanism| match Component::from_tagged(&mechanism.transport) {
                Ok(Component::TlsSecTrans(tls)) => tls.addresses,
                _ => Vec::new(),
            },
        )
    }
}

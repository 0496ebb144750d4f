//! Object references: a type id and profiles (CORBA 3 §13.6.2).

mod components;
mod csi;
mod describe;
mod policies;
mod profiles;

use alloc::string::String;
use alloc::vec::Vec;
pub use components::{
    Component, Group, ListenPoint, OmniUnixTrans, SslSecTrans, TaggedComponent, TaoEndpoint,
    TaoUnixEndpoint, TlsSecTrans, association, component_tag, orb_name,
};
pub use csi::{
    AttributeLayer, AuthenticationLayer, CompoundSecMech, CsiSecMechList, PrivilegeAuthority,
};
pub(crate) use describe::{Hex, at};
pub use policies::{
    ExposedPolicy, ExposedProtocol, PolicyValue, PriorityBand, PriorityModel, ProtocolProperties,
    TcpProperties, UnixProperties, policy_type,
};
pub use profiles::{IiopProfile, ProfileBody, ShmiopProfile, UiopProfile, object_key, profile_tag};

use crate::cdr::cdr_struct;
use crate::{EncodeError, Writer};

cdr_struct! {
    /// An object reference on the wire.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Ior {
        /// The repository id of the most derived interface; empty if unknown.
        pub type_id: String,
        /// The addresses of the object, best first.
        pub profiles: Vec<TaggedProfile>,
    }

    /// An address of an object for one protocol.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub struct TaggedProfile {
        /// The protocol; see [`profile_tag`].
        pub tag: u32,
        /// The profile's encapsulation.
        pub data: Vec<u8>,
    }
}

impl Ior {
    /// The nil reference.
    pub const NIL: Self = Self {
        type_id: String::new(),
        profiles: Vec::new(),
    };

    /// True for the nil reference.
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty()
    }

    /// Writes the reference without lending its bytes.
    pub(crate) fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.str(&self.type_id)?;
        w.count(self.profiles.len())?;
        for profile in &self.profiles {
            w.primitive(profile.tag)?;
            w.counted_bytes(&profile.data)?;
        }
        Ok(())
    }

    /// The reference to another object at the same addresses, by its object key. Profiles of unknown protocols stay as they are.
    #[must_use]
    pub fn with_object_key(&self, key: &[u8]) -> Self {
        macro_rules! with_key {
            ($profile:ident) => {{
                $profile.object_key = key.to_vec();
                $profile.to_tagged().ok()
            }};
        }
        let changed = |profile: &TaggedProfile| match ProfileBody::from_tagged(profile).ok()? {
            ProfileBody::Iiop(mut it) => with_key!(it),
            ProfileBody::Uiop(mut it) => with_key!(it),
            ProfileBody::Shmiop(mut it) => with_key!(it),
            ProfileBody::Components(_) | ProfileBody::Other(_) => None,
        };
        let profiles = self.profiles.iter();
        Self {
            type_id: self.type_id.clone(),
            profiles: profiles
                .map(|it| changed(it).unwrap_or_else(|| it.clone()))
                .collect(),
        }
    }

    /// The readable IIOP profiles, best first.
    pub fn iiop_profiles(&self) -> impl Iterator<Item = IiopProfile> {
        self.profiles
            .iter()
            .filter_map(|profile| IiopProfile::from_tagged(profile).ok())
    }
}

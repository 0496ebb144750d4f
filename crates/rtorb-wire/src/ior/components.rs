//! Tagged components: what a reference says about object and server besides the address.

use super::csi::CsiSecMechList;
use super::policies::ExposedPolicy;
use crate::cdr::{cdr_struct, decode_encapsulated, encapsulate};
use crate::code_sets::CodeSetComponentInfo;
use crate::{DecodeError, Encode, EncodeError};
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

/// Tags of components.
pub mod component_tag {
    /// The ORB that created the reference.
    pub const ORB_TYPE: u32 = 0;
    /// Code sets of the server.
    pub const CODE_SETS: u32 = 1;
    /// The object's policies for clients.
    pub const POLICIES: u32 = 2;
    /// Another address of the server.
    pub const ALTERNATE_IIOP_ADDRESS: u32 = 3;
    /// The whole object key.
    pub const COMPLETE_OBJECT_KEY: u32 = 5;
    /// TLS on another port.
    pub const SSL_SEC_TRANS: u32 = 20;
    /// The URL of Java classes.
    pub const JAVA_CODEBASE: u32 = 25;
    /// Transactions, of CORBA 2.
    pub const TRANSACTION_POLICY: u32 = 26;
    /// Replicas.
    pub const FT_GROUP: u32 = 27;
    /// This profile is the primary replica's.
    pub const FT_PRIMARY: u32 = 28;
    /// Heartbeats.
    pub const FT_HEARTBEAT_ENABLED: u32 = 29;
    /// Transactions.
    pub const OTS_POLICY: u32 = 31;
    /// Transactions and invocations.
    pub const INV_POLICY: u32 = 32;
    /// Security mechanisms.
    pub const CSI_SEC_MECH_LIST: u32 = 33;
    /// Addresses with TLS.
    pub const TLS_SEC_TRANS: u32 = 36;
    /// A multicast group.
    pub const GROUP: u32 = 39;
    /// TAO's endpoints with their priorities.
    pub const TAO_ENDPOINTS: u32 = 0x5441_4f02;
    /// omniORB: bidirectional connections.
    pub const OMNI_BIDIR: u32 = 0x4154_5401;
    /// omniORB: a UNIX socket of one host.
    pub const OMNI_UNIX_TRANS: u32 = 0x4154_5402;
    /// omniORB: the run of the server that created the reference.
    pub const OMNI_PERSISTENT_ID: u32 = 0x4154_5403;
    /// omniORB: limits of the connection.
    pub const OMNI_RESTRICTED: u32 = 0x4154_5404;
}

//= CORBA 3 §13.6.5
//# A component is a tag and bytes. A client ignores components that it does not know.
cdr_struct! {
    /// Information for clients about an object or its server.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub struct TaggedComponent {
        /// Its kind; see [`component_tag`].
        pub tag: u32,
        /// Its data, usually an encapsulation.
        pub data: Vec<u8>,
    }
}

impl TaggedComponent {
    /// A description in one line.
    pub fn describe(&self) -> String {
        match Component::from_tagged(self) {
            Ok(component) => component.to_string(),
            Err(error) => format!("component {:#x}, {error}", self.tag),
        }
    }
}

/// A decoded component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Component {
    /// The ORB that created the reference; see [`orb_name`].
    OrbType(u32),
    /// Code sets of the server.
    CodeSets(CodeSetComponentInfo),
    /// Policies of the object.
    Policies(Vec<ExposedPolicy>),
    /// Another address.
    AlternateIiopAddress(ListenPoint),
    /// The whole object key.
    CompleteObjectKey(Vec<u8>),
    /// TLS on a port of its own.
    SslSecTrans(SslSecTrans),
    /// Security mechanisms.
    CsiSecMechList(CsiSecMechList),
    /// Addresses with TLS.
    TlsSecTrans(TlsSecTrans),
    /// The URL of Java classes.
    JavaCodebase(String),
    /// A transaction or invocation policy, whose value is a number.
    NumberPolicy {
        /// [`component_tag::TRANSACTION_POLICY`], `OTS_POLICY` or `INV_POLICY`.
        tag: u32,
        /// Its value.
        value: u16,
    },
    /// A group of replicas, or of receivers.
    Group {
        /// [`component_tag::FT_GROUP`] or `GROUP`.
        tag: u32,
        /// The group.
        group: Group,
    },
    /// A boolean.
    Flag {
        /// [`component_tag::FT_PRIMARY`] or `FT_HEARTBEAT_ENABLED`.
        tag: u32,
        /// Its value.
        set: bool,
    },
    /// TAO's endpoints with their priorities. The first is the profile's own.
    TaoEndpoints(Vec<TaoEndpoint>),
    /// TAO's endpoints in a UIOP profile.
    TaoUnixEndpoints(Vec<TaoUnixEndpoint>),
    /// omniORB's UNIX socket, for clients on the same host.
    OmniUnixTrans(OmniUnixTrans),
    /// Any other component.
    Other(TaggedComponent),
}

impl Component {
    /// Decodes a component of any kind.
    ///
    /// # Errors
    /// When the kind is known and the data malformed.
    pub fn from_tagged(component: &TaggedComponent) -> Result<Self, DecodeError> {
        use component_tag as tag;
        let data = &component.data;
        Ok(match component.tag {
            tag::COMPLETE_OBJECT_KEY => Self::CompleteObjectKey(data.clone()),
            tag::ORB_TYPE => Self::OrbType(decode_encapsulated(data)?),
            tag::CODE_SETS => Self::CodeSets(decode_encapsulated(data)?),
            tag::POLICIES => Self::Policies(decode_encapsulated(data)?),
            tag::ALTERNATE_IIOP_ADDRESS => Self::AlternateIiopAddress(decode_encapsulated(data)?),
            tag::SSL_SEC_TRANS => Self::SslSecTrans(decode_encapsulated(data)?),
            tag::CSI_SEC_MECH_LIST => Self::CsiSecMechList(decode_encapsulated(data)?),
            tag::TLS_SEC_TRANS => Self::TlsSecTrans(decode_encapsulated(data)?),
            tag::JAVA_CODEBASE => Self::JavaCodebase(decode_encapsulated(data)?),
            tag::TRANSACTION_POLICY | tag::OTS_POLICY | tag::INV_POLICY => Self::NumberPolicy {
                tag: component.tag,
                value: decode_encapsulated(data)?,
            },
            tag::FT_GROUP | tag::GROUP => Self::Group {
                tag: component.tag,
                group: decode_encapsulated(data)?,
            },
            tag::FT_PRIMARY | tag::FT_HEARTBEAT_ENABLED => Self::Flag {
                tag: component.tag,
                set: decode_encapsulated(data)?,
            },
            tag::TAO_ENDPOINTS => Self::TaoEndpoints(decode_encapsulated(data)?),
            tag::OMNI_UNIX_TRANS => Self::OmniUnixTrans(decode_encapsulated(data)?),
            _ => Self::Other(component.clone()),
        })
    }

    /// As [`from_tagged`](Self::from_tagged), for a component of a UIOP or SHMIOP profile, where endpoints have another form.
    ///
    /// # Errors
    /// When the kind is known and the data malformed.
    pub fn from_uiop_tagged(component: &TaggedComponent) -> Result<Self, DecodeError> {
        match component.tag {
            component_tag::TAO_ENDPOINTS => {
                decode_encapsulated(&component.data).map(Self::TaoUnixEndpoints)
            }
            _ => Self::from_tagged(component),
        }
    }

    /// The component with its tag.
    ///
    /// # Errors
    /// When a string cannot be sent.
    pub fn to_tagged(&self) -> Result<TaggedComponent, EncodeError> {
        use component_tag as tag;
        let (tag, content): (u32, &dyn Encode) = match self {
            Self::OrbType(orb) => (tag::ORB_TYPE, orb),
            Self::CodeSets(info) => (tag::CODE_SETS, info),
            Self::Policies(policies) => (tag::POLICIES, policies),
            Self::AlternateIiopAddress(address) => (tag::ALTERNATE_IIOP_ADDRESS, address),
            Self::SslSecTrans(ssl) => (tag::SSL_SEC_TRANS, ssl),
            Self::CsiSecMechList(list) => (tag::CSI_SEC_MECH_LIST, list),
            Self::TlsSecTrans(tls) => (tag::TLS_SEC_TRANS, tls),
            Self::JavaCodebase(url) => (tag::JAVA_CODEBASE, url),
            Self::NumberPolicy { tag, value } => (*tag, value),
            Self::Group { tag, group } => (*tag, group),
            Self::Flag { tag, set } => (*tag, set),
            Self::TaoEndpoints(endpoints) => (tag::TAO_ENDPOINTS, endpoints),
            Self::TaoUnixEndpoints(endpoints) => (tag::TAO_ENDPOINTS, endpoints),
            Self::OmniUnixTrans(socket) => (tag::OMNI_UNIX_TRANS, socket),
            Self::CompleteObjectKey(key) => {
                return Ok(TaggedComponent {
                    tag: tag::COMPLETE_OBJECT_KEY,
                    data: key.clone(),
                });
            }
            Self::Other(component) => return Ok(component.clone()),
        };
        Ok(TaggedComponent {
            tag,
            data: encapsulate(|w| content.encode(w))?,
        })
    }
}

/// The name of an ORB by its [`Component::OrbType`].
pub fn orb_name(orb_type: u32) -> Option<&'static str> {
    // A vendor has 16 numbers or more, which begin with its letters. The last byte tells its ORBs apart.
    let vendor = orb_type & !0xff;
    let known = ORB_NAMES.iter().find(|(number, _)| *number == vendor);
    known.map(|(_, name)| *name)
}

/// ORB types that the OMG has registered, as catior and others print them, and our own. MICO has none.
const ORB_NAMES: [(u32, &str); 47] = [
    (0x414e_4400, "Androsoft"),
    (0x4150_5800, "University of Erlangen-Nuernberg"),
    (0x4154_5400, "omniORB"),
    (0x4164_6100, "AdaOS"),
    (0x4242_4300, "Bionic Buffalo"),
    (0x4245_4100, "WebLogic (BEA)"),
    (0x424c_5500, "Berry"),
    (0x444f_4700, "Exoffice"),
    (0x4552_4900, "Ericsson"),
    (0x4642_0000, "FloorBoard"),
    (0x464a_0000, "Fujitsu"),
    (0x4753_4900, "GemStone"),
    (0x4850_0000, "Hewlett Packard"),
    (0x4942_4d00, "IBM"),
    (0x494c_5500, "ILU (Xerox)"),
    (0x4953_4900, "AdNovum"),
    (0x4954_5f00, "Orbix (IONA)"),
    (0x4a41_4300, "JacORB"),
    (0x4a42_4b00, "SilverStream"),
    (0x4c43_4200, "2AB"),
    (0x4e45_4300, "NEC"),
    (0x4e4e_4e00, "Rogue Wave"),
    (0x4e4f_4b00, "Nokia"),
    (0x4e53_4400, "Compaq"),
    (0x4e55_0000, "Nihon Unisys"),
    (0x4f41_4b00, "Camros"),
    (0x4f42_4200, "ObjectBroker (BEA)"),
    (0x4f42_5400, "ORBit"),
    (0x4f42_5f00, "TIBCO"),
    (0x4f49_5300, "ORBexpress (Objective Interface Systems)"),
    (0x4f4f_4300, "Orbacus (OOC, IONA)"),
    (0x504f_0000, "PolyORB"),
    (0x5054_4300, "PrismTech"),
    (0x522e_4300, "Remoting.Corba"),
    (0x5241_5900, "RayORB"),
    (0x5341_4e00, "Sankhya"),
    (0x5355_4e00, "JDK (Sun)"),
    (0x5441_4f00, "TAO"),
    (0x5447_5800, "Top Graph'X"),
    (0x5449_4400, "Telefonica"),
    (0x5649_5300, "VisiBroker (Borland)"),
    (0x5649_5400, "Vitria"),
    (0x574c_5300, "WebLogic (BEA)"),
    (0x5850_5300, "PrismTech"),
    (0x5854_5200, "Xtradyne"),
    (0x7274_6200, "rtorb"),
    (0xcb0e_0000, "Chicago Board of Exchange"),
];

/// Options of a secured connection (bits).
pub mod association {
    /// No protection.
    pub const NO_PROTECTION: u16 = 1;
    /// Changes of the data are detected.
    pub const INTEGRITY: u16 = 2;
    /// The data is encrypted.
    pub const CONFIDENTIALITY: u16 = 4;
    /// The server authenticates itself.
    pub const ESTABLISH_TRUST_IN_TARGET: u16 = 32;
    /// The client authenticates itself.
    pub const ESTABLISH_TRUST_IN_CLIENT: u16 = 64;
}

cdr_struct! {
    /// TLS on a port of its own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SslSecTrans {
        /// The [association options](association) that the server supports.
        pub supports: u16,
        /// The options that it requires.
        pub requires: u16,
        /// TCP port, on the host of the profile.
        pub port: u16,
    }

    /// Addresses with TLS.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TlsSecTrans {
        /// The [association options](association) that the server supports.
        pub supports: u16,
        /// The options that it requires.
        pub requires: u16,
        /// The addresses.
        pub addresses: Vec<ListenPoint>,
    }

    /// A group of replicas, or of receivers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Group {
        /// The major and minor version of the component: 1.0.
        pub component_version: [u8; 2],
        /// The domain of the group.
        pub domain: String,
        /// The number of the group in its domain.
        pub id: u64,
        /// The version of the group, which counts changes.
        pub version: u32,
    }

    /// omniORB's UNIX socket.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OmniUnixTrans {
        /// The name of the host.
        pub host: String,
        /// The socket's path.
        pub path: String,
    }

    /// An address at which an ORB accepts connections.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListenPoint {
        /// Host name or address.
        pub host: String,
        /// TCP port.
        pub port: u16,
    }

    /// TAO's endpoint with a priority.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub struct TaoEndpoint {
        /// Host name or address.
        pub host: String,
        /// TCP port.
        pub port: u16,
        /// The CORBA priority of its lane; -1 for none.
        pub priority: i16,
    }

    /// TAO's UNIX socket with a priority.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub struct TaoUnixEndpoint {
        /// The socket's path.
        pub path: String,
        /// The CORBA priority of its lane; -1 for none.
        pub priority: i16,
    }
}

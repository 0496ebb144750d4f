//! What a profile says of priorities: RT-CORBA's policies, and the endpoints of lanes.

use rtorb_wire::ior::{
    Component, ExposedPolicy, ExposedProtocol, PriorityModel, ProtocolProperties, TaggedComponent,
    profile_tag,
};
use serde::Serialize;

use super::NamedValue;

/// The real-time side of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RealTime {
    /// Whose priority a call has, by the standard's name: `CLIENT_PROPAGATED` or `SERVER_DECLARED`.
    pub priority_model: Option<String>,
    /// The object's priority, or that of calls that bring none.
    pub server_priority: Option<i16>,
    /// Priorities with connections of their own.
    pub bands: Vec<Band>,
    /// Protocols that a client shall prefer, best first.
    pub client_protocols: Vec<ClientProtocol>,
    /// Where it listens, by priority; the first is the profile's own address.
    pub endpoints: Vec<LaneEndpoint>,
}

/// A range of CORBA priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Band {
    /// The least urgent.
    pub low: i16,
    /// The most urgent.
    pub high: i16,
}

/// A protocol, and how a client shall set it up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientProtocol {
    /// `IIOP` or `UIOP`.
    pub protocol: String,
    /// Bytes of the kernel's send buffer; 0 leaves it to the system.
    pub send_buffer_bytes: i32,
    /// Bytes of the kernel's receive buffer; 0 leaves it to the system.
    pub recv_buffer_bytes: i32,
    /// What is switched on of `keep_alive`, `dont_route` and `no_delay`.
    pub options: Vec<String>,
}

/// An address, and the lane behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneEndpoint {
    /// Host and port, or the path of a UNIX socket.
    pub address: String,
    /// The CORBA priority of the lane; none for an endpoint that serves every priority.
    pub priority: Option<i16>,
}

impl RealTime {
    /// What these components of a profile say; `None` if that is nothing.
    pub(super) fn of(tag: u32, components: &[TaggedComponent]) -> Option<Self> {
        let mut said = Self::default();
        for component in components {
            let read = match tag {
                profile_tag::TAO_UIOP | profile_tag::RTORB_SHMIOP => {
                    Component::from_uiop_tagged(component)
                }
                _ => Component::from_tagged(component),
            };
            match read {
                Ok(Component::Policies(policies)) => {
                    policies.into_iter().for_each(|policy| said.add(policy));
                }
                Ok(Component::TaoEndpoints(endpoints)) => {
                    said.endpoints = endpoints
                        .into_iter()
                        .map(|endpoint| {
                            lane(
                                super::address(&endpoint.host, endpoint.port),
                                endpoint.priority,
                            )
                        })
                        .collect();
                }
                Ok(Component::TaoUnixEndpoints(endpoints)) => {
                    said.endpoints = endpoints
                        .into_iter()
                        .map(|endpoint| lane(endpoint.path, endpoint.priority))
                        .collect();
                }
                _ => {}
            }
        }
        (said != Self::default()).then_some(said)
    }

    /// The same in words.
    #[must_use]
    pub fn fields(&self) -> Vec<NamedValue> {
        let mut fields = Vec::new();
        if let Some(model) = &self.priority_model {
            let priority = self.server_priority.unwrap_or_default();
            let whose = match model.as_str() {
                SERVER_DECLARED => format!("{priority}, whoever calls ({model})"),
                _ => self.of_caller(priority, model),
            };
            fields.push(NamedValue::new("priority", whose));
        }
        if !self.bands.is_empty() {
            let bands: Vec<_> = self.bands.iter().map(ToString::to_string).collect();
            fields.push(NamedValue::new("bands", bands.join(", ")));
        }
        for protocol in &self.client_protocols {
            fields.push(NamedValue::new("client_protocol", protocol));
        }
        for endpoint in &self.endpoints {
            fields.push(NamedValue::new("endpoint", endpoint));
        }
        fields
    }

    /// The priority of calls with CLIENT_PROPAGATED. A client that knows no lanes calls the first address.
    fn of_caller(&self, priority: i16, model: &str) -> String {
        let mut lanes = self
            .endpoints
            .iter()
            .filter_map(|endpoint| endpoint.priority);
        let first = lanes.next();
        match first {
            Some(first) if first != priority && lanes.all(|lane| lane != priority) => format!(
                "the caller's, which selects the lane; {first} for clients without RT-CORBA ({model})"
            ),
            _ => format!("the caller's, {priority} for callers that send none ({model})"),
        }
    }

    fn add(&mut self, policy: ExposedPolicy) {
        match policy {
            ExposedPolicy::PriorityModel {
                model,
                server_priority,
            } => {
                let name = match model {
                    PriorityModel::ClientPropagated => CLIENT_PROPAGATED,
                    PriorityModel::ServerDeclared => SERVER_DECLARED,
                };
                self.priority_model = Some(name.to_owned());
                self.server_priority = Some(server_priority);
            }
            ExposedPolicy::PriorityBands(bands) => {
                let band = |band: &rtorb_wire::ior::PriorityBand| Band {
                    low: band.low,
                    high: band.high,
                };
                self.bands = bands.iter().map(band).collect();
            }
            ExposedPolicy::ClientProtocols(protocols) => {
                self.client_protocols = protocols.iter().map(client_protocol).collect();
            }
            ExposedPolicy::Other(_) => {}
        }
    }
}

/// A protocol of ClientProtocolPolicy.
pub(super) fn client_protocol(protocol: &ExposedProtocol) -> ClientProtocol {
    match protocol.properties {
        ProtocolProperties::Tcp(tcp) => {
            let options = [
                ("keep_alive", tcp.keep_alive),
                ("dont_route", tcp.dont_route),
                ("no_delay", tcp.no_delay),
            ];
            ClientProtocol {
                protocol: "IIOP".to_owned(),
                send_buffer_bytes: tcp.send_buffer_bytes,
                recv_buffer_bytes: tcp.recv_buffer_bytes,
                options: options
                    .into_iter()
                    .filter(|(_, is_on)| *is_on)
                    .map(|(name, _)| name.to_owned())
                    .collect(),
            }
        }
        ProtocolProperties::Unix(unix) => ClientProtocol {
            protocol: "UIOP".to_owned(),
            send_buffer_bytes: unix.send_buffer_bytes,
            recv_buffer_bytes: unix.recv_buffer_bytes,
            options: Vec::new(),
        },
    }
}

/// -1 stands for none (TAO_TAG_ENDPOINTS).
fn lane(address: String, priority: i16) -> LaneEndpoint {
    LaneEndpoint {
        address,
        priority: (priority >= 0).then_some(priority),
    }
}

impl std::fmt::Display for Band {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}", self.low, self.high)
    }
}

impl std::fmt::Display for ClientProtocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.protocol)?;
        for (name, bytes) in [
            ("send buffer", self.send_buffer_bytes),
            ("receive buffer", self.recv_buffer_bytes),
        ] {
            if bytes != 0 {
                write!(f, ", {name} {bytes} bytes")?;
            }
        }
        self.options
            .iter()
            .try_for_each(|option| write!(f, ", {option}"))
    }
}

impl std::fmt::Display for LaneEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.priority {
            Some(priority) => write!(f, "{}, priority {priority}", self.address),
            None => write!(f, "{}, every priority", self.address),
        }
    }
}

const CLIENT_PROPAGATED: &str = "CLIENT_PROPAGATED";
const SERVER_DECLARED: &str = "SERVER_DECLARED";

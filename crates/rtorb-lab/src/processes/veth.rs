//! A pair of virtual Ethernet devices (veth(4)) that joins two network namespaces, made by rtnetlink(7).

use std::io;
use std::net::Ipv4Addr;

use rtorb_host::netlink::{Request, attribute_bytes};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

/// What a device is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceKind {
    /// The segments that TCP gives it as one packet at most.
    pub(crate) segments_max: u32,
    /// The queues by which it sends, and by which it receives.
    pub(crate) queues: u32,
}

/// Makes the devices, both with this name: one here, and one in the network namespace of a process or thread. Each sends and receives
/// by so many queues.
///
/// # Errors
/// What the kernel said.
pub(crate) fn make(name: &str, peer: u32, kind: DeviceKind) -> io::Result<()> {
    let device = [
        vec![0; INTERFACE_HEADER_BYTES],
        attribute_bytes(IFLA_IFNAME, name.as_bytes()),
        attribute_bytes(IFLA_GSO_MAX_SEGS, &kind.segments_max.to_ne_bytes()),
        attribute_bytes(IFLA_NUM_TX_QUEUES, &kind.queues.to_ne_bytes()),
        attribute_bytes(IFLA_NUM_RX_QUEUES, &kind.queues.to_ne_bytes()),
    ]
    .concat();
    let there = attribute_bytes(IFLA_NET_NS_PID, &peer.to_ne_bytes());
    let peer = attribute_bytes(VETH_INFO_PEER, &[device.as_slice(), &there].concat());
    let info = [
        attribute_bytes(IFLA_INFO_KIND, b"veth"),
        attribute_bytes(IFLA_INFO_DATA, &peer),
    ];
    let info = attribute_bytes(IFLA_LINKINFO, &info.concat());
    Request::route(RTM_NEWLINK, &[device, info].concat()).apply()
}

/// Gives the device of this name an address, and has it carry packets.
///
/// # Errors
/// What the kernel said.
pub(crate) fn set_up(name: &str, address: Ipv4Addr) -> io::Result<()> {
    let address = address.octets();
    let interface = interface(name)?;
    // struct ifaddrmsg of linux/if_addr.h: family, length of the prefix, flags, scope, index.
    let body = [
        vec![AF_INET, PREFIX_BITS, 0, 0],
        interface.to_ne_bytes().to_vec(),
        attribute_bytes(IFA_LOCAL, &address),
        attribute_bytes(IFA_ADDRESS, &address),
    ];
    Request::route(RTM_NEWADDR, &body.concat()).apply()?;
    // struct ifinfomsg of linux/rtnetlink.h: family and type, index, flags, those that change.
    let up = [0, interface, IFF_UP, IFF_UP].map(u32::to_ne_bytes);
    Request::route(RTM_SETLINK, up.as_flattened()).apply()
}

/// The number of the device of this name.
///
/// # Errors
/// What the kernel said.
pub(crate) fn interface(name: &str) -> io::Result<u32> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(any, name)?)
}

const PREFIX_BITS: u8 = 24;
/// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/veth.h, linux/if.h.
const RTM_NEWLINK: u16 = 16;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
/// struct ifinfomsg.
const INTERFACE_HEADER_BYTES: usize = 16;
const IFF_UP: u32 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_PID: u16 = 19;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const AF_INET: u8 = 2;

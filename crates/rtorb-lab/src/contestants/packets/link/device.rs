//! An end of a link: the process that keeps its network namespace, and makes the device in it by rtnetlink(7).

use std::io;
use std::net::Ipv4Addr;

use rtorb_host::netlink::{Request, attribute_bytes};
use rtorb_os::namespace::enter_new_network;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::{End, Part};
use crate::contestants::questions::{self, json};
use crate::processes::child::ready;

/// Makes a namespace for the calling thread, and [`Part`]s in it as it is asked, until standard input ends.
///
/// # Errors
/// What the host refused.
pub(in super::super) fn keep() -> Result<(), String> {
    enter_new_network().map_err(|errno| format!("a network namespace: {errno}"))?;
    ready("");
    let make = |part: Part| {
        part.make()
            .map_err(|error| format!("{part:?} cannot be made: {error}"))?;
        json(&())
    };
    questions::serve(make).map_err(|error| error.to_string())
}

impl Part {
    fn make(self) -> io::Result<()> {
        match self {
            Self::Devices { peer } => make_devices(peer),
            Self::Address(end) => set_up(end),
            Self::Queue(discipline) => discipline.set_up(interface()?),
        }
    }
}

/// Makes the pair of devices (veth(4)): one here, and one in the network namespace of a process.
fn make_devices(peer: u32) -> io::Result<()> {
    let device = [
        vec![0; INTERFACE_HEADER_BYTES],
        attribute_bytes(IFLA_IFNAME, DEVICE.as_bytes()),
        attribute_bytes(IFLA_GSO_MAX_SEGS, &1u32.to_ne_bytes()),
    ]
    .concat();
    let there = attribute_bytes(IFLA_NET_NS_PID, &peer.to_ne_bytes());
    let peer = attribute_bytes(VETH_INFO_PEER, &[device.as_slice(), &there].concat());
    let kind = [
        attribute_bytes(IFLA_INFO_KIND, b"veth"),
        attribute_bytes(IFLA_INFO_DATA, &peer),
    ];
    let kind = attribute_bytes(IFLA_LINKINFO, &kind.concat());
    Request::route(RTM_NEWLINK, &[device, kind].concat()).apply()
}

/// Gives the device its address, and has it carry packets.
fn set_up(end: End) -> io::Result<()> {
    let address: Ipv4Addr = end.address().parse().map_err(io::Error::other)?;
    let address = address.octets();
    let interface = interface()?;
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

/// The number of this end's device.
fn interface() -> io::Result<u32> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(any, DEVICE)?)
}

const DEVICE: &str = "slow";
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
/// Each segment is a packet. Otherwise TCP gives the device up to 64 KiB as one packet, and an urgent one waits for all of it.
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const AF_INET: u8 = 2;

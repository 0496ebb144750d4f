//! The queueing disciplines of a slow link, made by rtnetlink(7) as tc(8) makes them: the recipes of docs/how-to/network-priority.md.
//!
//! HTB is the slow link in each of them: it sends one packet after another at the rate of the link, as a wire does. It has
//! bursts of one packet.

use std::io;

use rtorb_host::netlink::{Request, attribute_bytes};
use serde::{Deserialize, Serialize};
use strum::VariantNames;

use super::RATE_MBIT;
use super::device::kind;
use crate::contestants::packets::URGENT_DSCP;

/// How packets wait for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Discipline {
    /// In two classes of HTB by the DSCP of a packet, urgent ones first. Both borrow the rate of the link. With a rate of its own
    /// a class would not wait for the other's packets.
    Htb,
    /// In the bands of `prio` by the SO_PRIORITY of a packet, before a link of one class.
    Prio,
}

impl Discipline {
    /// Every discipline.
    pub const ALL: [Self; 2] = [Self::Htb, Self::Prio];

    /// Its name in tc(8) and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::VARIANTS[self as usize]
    }

    /// Puts it in the place of the discipline that the interface has.
    pub(super) fn set_up(self, interface: u32) -> io::Result<()> {
        let root = tc_header([interface, 0, ROOT, 0]);
        // An error means that the device has none but what the kernel gave it.
        let _ = Request::route(RTM_DELQDISC, &root).apply();
        let mut objects = self.objects().into_iter();
        objects.try_for_each(|object| object.make(interface))
    }

    fn objects(self) -> Vec<Object> {
        let rate = RATE_MBIT * 1_000_000 / 8;
        match self {
            Self::Htb => {
                let (root, link, urgent, bulk) = (id(1, 0), id(1, 1), id(1, 0x10), id(1, 0x20));
                // So little that a class has to borrow for every packet.
                let own = 1_000;
                vec![
                    htb(root, 0x20),
                    class(link, root, [rate, rate], 0),
                    class(urgent, link, [own, rate], 0),
                    class(bulk, link, [own, rate], 1),
                    queue(0, urgent, "pfifo", PACKETS_MAX.to_ne_bytes().to_vec()),
                    queue(0, bulk, "pfifo", PACKETS_MAX.to_ne_bytes().to_vec()),
                    dscp_filter(root, URGENT_DSCP, urgent),
                ]
            }
            Self::Prio => {
                let (root, link) = (id(1, 0), id(1, 1));
                vec![
                    htb(root, 1),
                    class(link, root, [rate, rate], 0),
                    queue(id(2, 0), link, "prio", prio_options()),
                ]
            }
        }
    }
}

/// A discipline, a class or a filter.
#[derive(Debug, PartialEq, Eq)]
struct Object {
    /// RTM_NEWQDISC and the like.
    kind: u16,
    /// 0 has the kernel choose one.
    handle: u32,
    parent: u32,
    info: u32,
    name: &'static str,
    options: Vec<u8>,
}

impl Object {
    fn make(&self, interface: u32) -> io::Result<()> {
        let body = [
            tc_header([interface, self.handle, self.parent, self.info]),
            attribute_bytes(TCA_KIND, format!("{}\0", self.name).as_bytes()),
            attribute_bytes(TCA_OPTIONS, &self.options),
        ];
        let made = Request::route(self.kind, &body.concat()).apply();
        made.map_err(|error| io::Error::new(kind(&error), format!("{}: {error}", self.name)))
    }
}

/// struct tcmsg of linux/rtnetlink.h: no family, and interface, handle, parent and info.
fn tc_header([interface, handle, parent, info]: [u32; 4]) -> Vec<u8> {
    let numbers = [0, interface, handle, parent, info];
    numbers.map(u32::to_ne_bytes).concat()
}

/// HTB at the root. Packets that no filter takes belong to the class of this minor number.
fn htb(handle: u32, default: u32) -> Object {
    // struct tc_htb_glob of linux/pkt_sched.h: version, divisor of rates for quanta, default class; the others are for output.
    let options = [3, 10, default, 0, 0].map(u32::to_ne_bytes).concat();
    let options = attribute_bytes(TCA_HTB_INIT, &options);
    queue(handle, ROOT, "htb", options)
}

fn queue(handle: u32, parent: u32, name: &'static str, options: Vec<u8>) -> Object {
    Object {
        kind: RTM_NEWQDISC,
        handle,
        parent,
        info: 0,
        name,
        options,
    }
}

/// A class of HTB with a rate of its own and one that it borrows up to, in bytes a second. Of those that borrow, the lowest order is
/// first.
fn class(handle: u32, parent: u32, rates: [u32; 2], order: u32) -> Object {
    // struct tc_ratespec of linux/pkt_sched.h, by which the kernel needs no table of rates.
    let header = u32::from_ne_bytes([0, TC_LINKLAYER_ETHERNET, 0, 0]);
    let specified = rates.map(|rate| [header, 0, rate]);
    let bursts = rates.map(|rate| BURST_BYTES * 1_000_000 / rate * TICKS_IN_8_US / 8);
    let last = [QUANTUM_BYTES, 0, order];
    // struct tc_htb_opt.
    let numbers = [specified.as_flattened(), &bursts, &last].concat();
    let octets: Vec<u8> = numbers.into_iter().flat_map(u32::to_ne_bytes).collect();
    Object {
        kind: RTM_NEWTCLASS,
        ..queue(
            handle,
            parent,
            "htb",
            attribute_bytes(TCA_HTB_PARMS, &octets),
        )
    }
}

/// Gives IPv4 packets of a DSCP to a class.
fn dscp_filter(parent: u32, dscp: u8, class: u32) -> Object {
    let type_of_service = |octet: u8| [0, octet, 0, 0];
    // struct tc_u32_sel of linux/pkt_cls.h, with one key: mask, value, and place of the first word of the IP header.
    let selector = [
        [TC_U32_TERMINAL, 0, 1, 0],
        [0; 4],
        [0; 4],
        [0; 4],
        type_of_service(0xfc),
        type_of_service(dscp << 2),
        [0; 4],
        [0; 4],
    ];
    let options = [
        attribute_bytes(TCA_U32_CLASSID, &class.to_ne_bytes()),
        attribute_bytes(TCA_U32_SEL, selector.as_flattened()),
    ];
    Object {
        kind: RTM_NEWTFILTER,
        info: ETH_P_IP.to_be().into(),
        ..queue(0, parent, "u32", options.concat())
    }
}

/// struct tc_prio_qopt of linux/pkt_sched.h: SO_PRIORITY 6 is in the band that is served first, 4 in the second, 0 in the last.
fn prio_options() -> Vec<u8> {
    let bands = 3u32.to_ne_bytes();
    let band_of_priority = [2, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    [&bands[..], &band_of_priority].concat()
}

/// The number `major:minor` of tc(8).
const fn id(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// More than TCP has under way.
const PACKETS_MAX: u32 = 100;
const BURST_BYTES: u32 = 1_600;
const QUANTUM_BYTES: u32 = 1_514;
/// The kernel takes the time of a burst in units of 64 ns (PSCHED_SHIFT of net/pkt_sched.h).
const TICKS_IN_8_US: u32 = 125;
/// linux/rtnetlink.h, linux/pkt_sched.h, linux/pkt_cls.h, linux/if_ether.h.
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_NEWTCLASS: u16 = 40;
const RTM_NEWTFILTER: u16 = 44;
const ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TC_U32_TERMINAL: u8 = 1;
const ETH_P_IP: u16 = 0x0800;

#[cfg(test)]
mod tests {
    use super::*;

    /// The options that tc of iproute2 6.1 sends for the commands of docs/how-to/network-priority.md.
    #[test]
    fn options_are_those_that_tc_sends() {
        let objects = Discipline::Htb.objects();
        let options = |index: usize| {
            let words = objects[index].options.as_chunks().0.iter();
            words
                .map(|word: &[u8; 4]| u32::from_le_bytes(*word))
                .collect::<Vec<_>>()
        };
        assert_eq!(options(0), [0x2_0018, 3, 10, 0x20, 0, 0]);
        let class = options(2);
        assert_eq!(class[0], 0x1_0030, "without the tables that tc adds");
        // Linklayer and rate of each of the two, without the columns of those tables.
        let of_rates = [1, 3, 4, 6].map(|index| class[index]);
        assert_eq!(of_rates, [0x100, 1_000, 0x100, 1_250_000]);
        assert_eq!(class[7..], [25_000_000, 20_000, 1_514, 0, 0]);
        assert_eq!(options(4), [100]);
        let filter = [
            0x1_0008, 0x1_0010, 0x5_0024, 0x1_0001, 0, 0, 0, 0xfc00, 0xb800, 0, 0,
        ];
        assert_eq!((options(6), objects[6].info), (filter.to_vec(), 8));
        let numbers = |object: &Object| (object.kind, object.handle, object.parent);
        assert_eq!(numbers(&objects[2]), (40, 65_552, 65_537));
        assert_eq!(numbers(&objects[6]), (44, 0, 65_536));
    }
}

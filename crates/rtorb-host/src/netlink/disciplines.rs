//! In which order packets leave an interface: the queueing disciplines of `tc qdisc show`.

use super::{Request, attribute, text, u32_at};

/// A queueing discipline of an interface (tc(8)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Discipline {
    /// The index of the interface.
    pub(crate) interface: u32,
    /// Its own number, whose upper half its classes have too.
    pub(crate) handle: u32,
    /// [`ROOT`], or the class of another discipline that it belongs to.
    pub(crate) parent: u32,
    /// `pfifo_fast`, `fq_codel`, `mq`, ...
    pub(crate) kind: String,
}

impl Discipline {
    /// The kinds of those disciplines in which packets of an interface wait, without repetition. Below `mq` each transmit queue
    /// has its own.
    pub(crate) fn kinds(all: &[Self], interface: u32) -> Vec<String> {
        let own = || all.iter().filter(|one| one.interface == interface);
        let Some(root) = own().find(|one| one.parent == ROOT) else {
            return Vec::new();
        };
        if root.kind != "mq" {
            return vec![root.kind.clone()];
        }
        let below = own().filter(|one| one.parent != ROOT && one.parent >> 16 == root.handle >> 16);
        let mut kinds: Vec<String> = below.map(|one| one.kind.clone()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

/// Asks for the disciplines of all interfaces.
pub(super) fn ask() -> Option<Vec<Discipline>> {
    let disciplines = Request {
        protocol: None,
        kind: RTM_GETQDISC,
        body: &[0; TCMSG_BYTES],
    };
    let bodies = disciplines.dump()?;
    Some(bodies.iter().filter_map(|body| parse(body)).collect())
}

/// Reads struct tcmsg of linux/rtnetlink.h and the attribute behind it.
fn parse(body: &[u8]) -> Option<Discipline> {
    let kind = attribute(body.get(TCMSG_BYTES..)?, TCA_KIND)?;
    Some(Discipline {
        interface: u32_at(body, 4)?,
        handle: u32_at(body, 8)?,
        parent: u32_at(body, 12)?,
        kind: text(kind),
    })
}

/// TC_H_ROOT of linux/pkt_sched.h.
pub(crate) const ROOT: u32 = u32::MAX;
/// linux/rtnetlink.h.
const TCMSG_BYTES: usize = 20;
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;

#[cfg(test)]
mod tests {
    use super::super::attribute_bytes;
    use super::*;

    fn discipline(interface: u32, (handle, parent): (u32, u32), kind: &str) -> Discipline {
        Discipline {
            interface,
            handle,
            parent,
            kind: kind.to_owned(),
        }
    }

    #[test]
    fn a_message_names_a_discipline() {
        let numbers = [0u32, 4, 0x10000, ROOT, 2].map(u32::to_ne_bytes).concat();
        let body = [numbers, attribute_bytes(TCA_KIND, b"pfifo_fast\0")].concat();
        let expected = discipline(4, (0x10000, ROOT), "pfifo_fast");
        assert_eq!(parse(&body), Some(expected));
        assert_eq!(parse(&body[..TCMSG_BYTES]), None);
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn packets_wait_below_mq_and_in_no_class_of_another_discipline() {
        let all = [
            discipline(2, (0, ROOT), "mq"),
            discipline(2, (0, 1), "fq_codel"),
            discipline(2, (0, 2), "fq_codel"),
            discipline(2, (0xffff_0000, 0xffff_fff1), "clsact"),
            discipline(3, (0x1_0000, ROOT), "prio"),
            discipline(3, (0x2_0000, 0x1_0001), "fq_codel"),
        ];
        assert_eq!(Discipline::kinds(&all, 2), ["fq_codel"]);
        assert_eq!(Discipline::kinds(&all, 3), ["prio"]);
        assert!(Discipline::kinds(&all, 4).is_empty());
    }
}

//! When a network device interrupts after a packet: the settings of `ethtool -c`.

use rustix::net::netlink::GENERIC;
use serde::{Deserialize, Serialize};

use super::{InterfaceCoalescing, Request, attribute, text, u16_at, u32_at};

/// When a network device interrupts after a packet (linux/ethtool.h, struct ethtool_coalesce). A setting that the driver does
/// not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescing {
    /// Microseconds after a packet at which the device interrupts at the latest (`rx-usecs`); 0 is at once.
    pub receive_us: Option<u32>,
    /// Packets after which the device interrupts at the latest (`rx-frames`).
    pub receive_frames: Option<u32>,
    /// Whether the driver changes these settings by the traffic (`adaptive-rx`).
    pub adaptive: Option<bool>,
}

/// Asks for the settings of all devices that have any.
pub(super) fn ask() -> Option<Vec<InterfaceCoalescing>> {
    let families = Request {
        protocol: Some(GENERIC),
        kind: GENL_ID_CTRL,
        body: &[CTRL_CMD_GETFAMILY, VERSION, 0, 0],
    };
    let ethtool = families.dump()?.iter().find_map(|body| ethtool(body))?;
    let devices = Request {
        protocol: Some(GENERIC),
        kind: ethtool,
        body: &[ETHTOOL_MSG_COALESCE_GET, VERSION, 0, 0],
    };
    Some(
        devices
            .dump()?
            .iter()
            .filter_map(|body| parse(body))
            .collect(),
    )
}

/// The number of the family `ethtool`, if this message describes it.
fn ethtool(body: &[u8]) -> Option<u16> {
    let attributes = body.get(GENERIC_HEADER_BYTES..)?;
    let name = attribute(attributes, CTRL_ATTR_FAMILY_NAME)?;
    let number = attribute(attributes, CTRL_ATTR_FAMILY_ID)?;
    (text(name) == "ethtool").then_some(u16_at(number, 0)?)
}

fn parse(body: &[u8]) -> Option<InterfaceCoalescing> {
    let attributes = body.get(GENERIC_HEADER_BYTES..)?;
    let header = attribute(attributes, ETHTOOL_A_COALESCE_HEADER)?;
    let number = |kind| u32_at(attribute(attributes, kind)?, 0);
    let adaptive = attribute(attributes, ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX);
    Some(InterfaceCoalescing {
        interface: u32_at(attribute(header, ETHTOOL_A_HEADER_DEV_INDEX)?, 0)?,
        coalescing: Coalescing {
            receive_us: number(ETHTOOL_A_COALESCE_RX_USECS),
            receive_frames: number(ETHTOOL_A_COALESCE_RX_MAX_FRAMES),
            adaptive: adaptive.and_then(|value| Some(*value.first()? != 0)),
        },
    })
}

/// linux/genetlink.h.
const GENERIC_HEADER_BYTES: usize = 4;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const VERSION: u8 = 1;
/// linux/ethtool_netlink.h.
const ETHTOOL_MSG_COALESCE_GET: u8 = 19;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_COALESCE_HEADER: u16 = 1;
const ETHTOOL_A_COALESCE_RX_USECS: u16 = 2;
const ETHTOOL_A_COALESCE_RX_MAX_FRAMES: u16 = 3;
const ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX: u16 = 11;

#[cfg(test)]
mod tests {
    use super::super::attribute_bytes;
    use super::*;

    #[test]
    fn a_device_says_what_its_driver_has() {
        let header = attribute_bytes(ETHTOOL_A_HEADER_DEV_INDEX, &4u32.to_ne_bytes());
        let body = [
            vec![20, VERSION, 0, 0],
            attribute_bytes(0x8000 | ETHTOOL_A_COALESCE_HEADER, &header),
            attribute_bytes(ETHTOOL_A_COALESCE_RX_USECS, &50u32.to_ne_bytes()),
            attribute_bytes(ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, &[1]),
        ]
        .concat();
        let found = parse(&body).unwrap();
        let expected = Coalescing {
            receive_us: Some(50),
            receive_frames: None,
            adaptive: Some(true),
        };
        assert_eq!((found.interface, found.coalescing), (4, expected));
        assert_eq!(parse(&body[..4]), None);
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn the_family_is_found_by_its_name() {
        let family = |name: &[u8]| {
            [
                vec![1, VERSION, 0, 0],
                attribute_bytes(CTRL_ATTR_FAMILY_NAME, name),
                attribute_bytes(CTRL_ATTR_FAMILY_ID, &21u16.to_ne_bytes()),
            ]
            .concat()
        };
        assert_eq!(ethtool(&family(b"ethtool\0")), Some(21));
        assert_eq!(ethtool(&family(b"nl80211\0")), None);
    }
}

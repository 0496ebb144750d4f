//! An end of a link: the process that keeps its network namespace, and makes the device in it.

use std::io;

use rtorb_instruments::network::enter_new_network;

use super::Part;
use crate::processes::{questions, veth};

/// Makes a namespace for the calling thread, and [`Part`]s in it as it is asked, until standard input ends.
///
/// # Errors
/// What the host refused.
pub(in super::super) fn keep() -> Result<(), String> {
    enter_new_network().map_err(|errno| format!("a network namespace: {errno}"))?;
    questions::serve(|part: Part| {
        part.make()
            .map_err(|error| format!("{part:?} cannot be made: {error}"))
    })
}

impl Part {
    fn make(self) -> io::Result<()> {
        match self {
            Self::Devices { peer } => veth::make(DEVICE, peer, SEGMENTS_MAX),
            Self::Address(end) => {
                let address = end.address().parse().map_err(io::Error::other)?;
                veth::set_up(DEVICE, address)
            }
            Self::Queue(discipline) => discipline.set_up(veth::interface(DEVICE)?),
        }
    }
}

/// Each segment is a packet. Otherwise TCP gives the device up to 64 KiB as one packet, and an urgent one waits for all of it.
const SEGMENTS_MAX: u32 = 1;
const DEVICE: &str = "slow";

//! A link of the laboratory's own: two network namespaces, joined by a pair of virtual Ethernet devices.
//!
//! The namespaces have no names. Each exists as long as a process is in it, so nothing is left behind however the laboratory
//! ends. The host's own network is not touched.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::processes::{Launcher, Process};
pub use discipline::Discipline;
pub use receiving::{FLOOD_QUEUE, Receiving, URGENT_QUEUE};

pub(super) mod device;
mod discipline;
mod receiving;

/// A link. With a [`Discipline`] it carries [`RATE_MBIT`] Mbit/s in each direction, else as much as the CPUs do.
#[derive(Debug)]
pub struct Link {
    /// The processes that keep the namespaces and set up the devices in them, in the order of [`End::BOTH`].
    keepers: [Process; 2],
    /// The queueing discipline of both ends, once they have one.
    discipline: Option<Discipline>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// That of the clients.
    Clients,
    /// That of the server.
    Server,
}

/// What the keeper of a namespace is asked to make in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    /// A device here and its peer in the namespace of this process, each with so many queues.
    Devices { peer: u32, queues: u32 },
    /// The address of an end, on a device that is up.
    Address(End),
    /// The queue of the device.
    Queue(Discipline),
    /// The CPU whose packets leave by this queue of the device.
    SendingQueue { queue: u32, cpu: usize },
    /// The way in which packets from the device are received on this CPU.
    Receiving { receiving: Receiving, cpu: usize },
}

impl Link {
    /// Makes the namespaces and joins them by devices with so many queues. Packets wait for the link once [`Self::queue_by`] has said how.
    ///
    /// # Errors
    /// [`LabError::Refused`] if the host forbids or lacks it; what went wrong; the interrupt.
    pub fn start(launcher: &Launcher, queues: u32) -> Result<Self, LabError> {
        let keeper = |end: End, words: &[&str]| -> Result<Process, LabError> {
            let name = format!("the network namespace of the {end:?} end");
            launcher.start(&name, &[&["network"], words].concat())
        };
        let server = keeper(End::Server, &[])?;
        let peer = server.id();
        let mut link = Self {
            keepers: [keeper(End::Clients, &[&device::name(peer)])?, server],
            discipline: None,
        };
        link.make(End::Clients, Part::Devices { peer, queues })?;
        for end in End::BOTH {
            link.make(end, Part::Address(end))?;
        }
        Ok(link)
    }

    /// Gives both ends this discipline, if they have another one.
    ///
    /// # Errors
    /// [`LabError::Refused`] if the host forbids or lacks it; what went wrong; the interrupt.
    pub fn queue_by(&mut self, discipline: Discipline) -> Result<(), LabError> {
        if self.discipline != Some(discipline) {
            // One that is made in part is none.
            self.discipline = None;
            for end in End::BOTH {
                self.make(end, Part::Queue(discipline))?;
            }
            self.discipline = Some(discipline);
        }
        Ok(())
    }

    /// Has the clients' end send what comes from a CPU by a queue of its own, which is a queue of the server's end too.
    ///
    /// # Errors
    /// [`LabError::Refused`] if the host forbids or lacks it; what went wrong; the interrupt.
    pub fn send_by(&mut self, queue: u32, cpu: usize) -> Result<(), LabError> {
        self.make(End::Clients, Part::SendingQueue { queue, cpu })
    }

    /// Has the server's end receive packets in this way on this CPU.
    ///
    /// # Errors
    /// [`LabError::Refused`] if the host forbids or lacks it; what went wrong; the interrupt.
    pub fn receive_by(&mut self, receiving: Receiving, cpu: usize) -> Result<(), LabError> {
        self.make(End::Server, Part::Receiving { receiving, cpu })
    }

    /// Starts a process in one of the [`crate::roles`] at an end of the link.
    ///
    /// # Errors
    /// As [`Launcher::start`].
    pub fn start_at(
        &self,
        end: End,
        launcher: &Launcher,
        name: &str,
        role: &[&str],
    ) -> Result<Process, LabError> {
        let keeper = self.keeper(end).id().to_string();
        let words = [&["--network", &keeper], role].concat();
        launcher.start(name, &words)
    }

    fn make(&mut self, end: End, part: Part) -> Result<(), LabError> {
        match self.keepers[end as usize].ask(&part, Duration::ZERO)? {
            None => Ok(()),
            Some(what) => Err(LabError::Refused { what }),
        }
    }

    fn keeper(&self, end: End) -> &Process {
        &self.keepers[end as usize]
    }
}

impl End {
    const BOTH: [Self; 2] = [Self::Clients, Self::Server];

    /// Its address. The range is for documentation (RFC 5737); nothing else is in the namespaces.
    #[must_use]
    pub fn address(self) -> &'static str {
        match self {
            Self::Clients => "192.0.2.1",
            Self::Server => "192.0.2.2",
        }
    }
}

/// The rate of the link, in each direction.
pub const RATE_MBIT: u32 = 10;
/// The time of a full packet on the link: 1,500 bytes and the header of Ethernet.
pub const PACKET_NS: u64 = 1_514 * 8 * 1_000 / RATE_MBIT as u64;

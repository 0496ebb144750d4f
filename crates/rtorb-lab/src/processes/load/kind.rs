//! The kinds of load: their names, and what each does when this program makes it.

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::{DATAGRAM_BYTES, FILE_BYTES, HOGS, MAPPED_BYTES, PIPE_ENDS, TIMERS, TOUCHED_BYTES};
use super::{UNIX_PAIRS, WRITE_BYTES};

/// One kind of load.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, EnumString, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// Five threads or processes of low priority that compute without end.
    Hog,
    /// Files are written, forced to the disk and removed.
    Disk,
    /// Octets are sent over a link of their own as fast as it takes them.
    Network,
    /// A process that has much memory is copied again and again.
    Fork,
    /// Much memory is mapped, touched and given back.
    Munmap,
    /// Many threads write to many others through pipes.
    Pipes,
    /// A stream over TCP through the loopback device.
    Tcp,
    /// Small datagrams through the loopback device.
    Udp,
    /// Everything below /proc that tells of the system is read.
    Proc,
    /// Files in memory are written and removed.
    Tmpfs,
    /// Many timers expire at the same instant.
    Timers,
    /// Programs are started and end.
    Exec,
    /// Messages go to and fro over sockets of the UNIX domain.
    Unix,
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Those that P4 section 2.1 has: the mix on a host.
    pub const MIX: [Self; 3] = [Self::Hog, Self::Disk, Self::Network];

    /// Those that need neither a disk nor a program but this one: each is a load of an emulated machine, and all together are its mix.
    pub const EMULATED_MIX: [Self; 11] = [
        Self::Hog,
        Self::Fork,
        Self::Munmap,
        Self::Pipes,
        Self::Tcp,
        Self::Udp,
        Self::Proc,
        Self::Tmpfs,
        Self::Timers,
        Self::Exec,
        Self::Unix,
    ];

    /// Its name as the command and the label `load` have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// What this program does to make it.
    pub(super) fn described(self) -> String {
        match self {
            Self::Hog => format!("{HOGS} threads that compute"),
            Self::Disk => format!(
                "files of {FILE_BYTES} octets, {WRITE_BYTES} at a time, each forced to the disk"
            ),
            Self::Network => {
                "a stream over TCP and datagrams over UDP between two network namespaces".to_owned()
            }
            Self::Fork => format!("a process that has touched {TOUCHED_BYTES} octets is forked"),
            Self::Munmap => format!("{MAPPED_BYTES} octets are mapped, touched and unmapped"),
            Self::Pipes => format!("{PIPE_ENDS} threads write to {PIPE_ENDS} others through pipes"),
            Self::Tcp => format!("a stream over TCP, {WRITE_BYTES} octets at a time"),
            Self::Udp => format!("datagrams of {DATAGRAM_BYTES} octets over UDP"),
            Self::Proc => "files below /proc are read".to_owned(),
            Self::Tmpfs => {
                format!("files of {FILE_BYTES} octets in memory are written and removed")
            }
            Self::Timers => format!("{TIMERS} timers expire at the same instant"),
            Self::Exec => "programs are started and end".to_owned(),
            Self::Unix => {
                format!("{UNIX_PAIRS} pairs of threads answer each other over UNIX sockets")
            }
        }
    }
}

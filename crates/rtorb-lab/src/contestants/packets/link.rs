//! A slow link of the laboratory's own: two network namespaces, joined by a pair of virtual Ethernet devices.
//!
//! The namespaces have no names. Each exists as long as a process is in it, so nothing is left behind however the laboratory
//! ends. The host's own network is not touched.

use std::process::Command;
use std::time::Duration;

use super::URGENT_DSCP;
use crate::error::LabError;
use crate::processes::tools::run_tool;
use crate::processes::{Launcher, Process};

/// A link that carries [`RATE_MBIT`] Mbit/s in each direction.
#[derive(Debug)]
pub struct Link {
    /// The processes that keep the namespaces, in the order of [`End`].
    keepers: [Process; 2],
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// That of the clients.
    Clients,
    /// That of the server.
    Server,
}

impl Link {
    /// Makes the namespaces, joins them, and sets up a queueing discipline at each end.
    ///
    /// # Errors
    /// What the host refused, or the interrupt.
    pub fn start(launcher: &Launcher) -> Result<Self, LabError> {
        let keeper = |end: End| -> Result<Process, LabError> {
            let name = format!("the network namespace of the {end:?} end");
            let mut keeper = launcher.start(&name, &KEEPER)?;
            keeper.ready()?;
            Ok(keeper)
        };
        let link = Self {
            keepers: [keeper(End::Clients)?, keeper(End::Server)?],
        };
        let peer = link.keeper(End::Server).id().to_string();
        link.configure(launcher, End::Clients, JOIN, &[&peer])?;
        let rate = format!("{RATE_MBIT}mbit");
        let type_of_service = format!("{:#x}", URGENT_DSCP << 2);
        for end in [End::Clients, End::Server] {
            let arguments = [end.address(), &rate, &type_of_service];
            link.configure(launcher, end, SET_UP, &arguments)?;
        }
        Ok(link)
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
        let namespace = self.namespace(end);
        let executable = launcher.executable.to_string_lossy();
        // Neither `nsenter` nor the child makes a process: the laboratory stays the parent.
        let parent = std::process::id().to_string();
        let enter = ["exec", "nsenter", &namespace, "--", &executable];
        let child = ["child", "--parent", &parent];
        let words: Vec<&str> = enter.iter().chain(&child).chain(role).copied().collect();
        launcher.start(name, &words)
    }

    fn keeper(&self, end: End) -> &Process {
        &self.keepers[end as usize]
    }

    /// The option by which `nsenter` finds the namespace of an end.
    fn namespace(&self, end: End) -> String {
        format!("--net=/proc/{}/ns/net", self.keeper(end).id())
    }

    /// Runs a script at an end.
    fn configure(
        &self,
        launcher: &Launcher,
        end: End,
        script: &str,
        arguments: &[&str],
    ) -> Result<(), LabError> {
        let mut command = Command::new("nsenter");
        command.arg(self.namespace(end));
        command.args(["--", "sh", "-euxc", script, "link"]);
        run_tool(command.args(arguments), TOOL_TIMEOUT, &launcher.interrupt).map(drop)
    }
}

impl End {
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

/// Keeps a namespace until its standard input ends.
const KEEPER: [&str; 7] = [
    "tool",
    "unshare",
    "--net",
    "--",
    "sh",
    "-c",
    "echo ready; exec cat",
];
/// Makes the two devices; the argument is a process in the other namespace.
const JOIN: &str = "ip link add slow type veth peer name slow netns \"$1\"";
/// Arguments: address, rate of the link, type of service of urgent packets.
///
/// Each segment is a packet (`gso_max_segs`): otherwise TCP gives the device up to 64 KiB as one packet, and an urgent one
/// waits for all of it. A burst is one packet long. Both classes borrow the rate of the link, urgent packets first, so the link
/// carries one packet after another, as a wire does. With a rate of its own a class would not wait for the other's packets.
const SET_UP: &str = r#"
ip address add "$1/24" dev slow
ip link set slow gso_max_segs 1
ip link set slow up
tc qdisc replace dev slow root handle 1: htb default 20
tc class add dev slow parent 1: classid 1:1 htb rate "$2" ceil "$2" burst 1600 cburst 1600
tc class add dev slow parent 1:1 classid 1:10 htb rate 8kbit ceil "$2" burst 1600 cburst 1600 quantum 1514 prio 0
tc class add dev slow parent 1:1 classid 1:20 htb rate 8kbit ceil "$2" burst 1600 cburst 1600 quantum 1514 prio 1
tc qdisc add dev slow parent 1:10 pfifo limit 100
tc qdisc add dev slow parent 1:20 pfifo limit 100
tc filter add dev slow parent 1: protocol ip u32 match ip dsfield "$3" 0xfc flowid 1:10
"#;
/// Far longer than any of the scripts takes.
const TOOL_TIMEOUT: Duration = Duration::from_secs(5);

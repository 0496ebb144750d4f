//! Urgent calls and bulk transfers of low priority over one slow link.
//!
//! A [`link`] has two ends. A [`server`] runs at one of them, and [`clients`] at the other. A [`Pair`] is both, as the
//! laboratory starts and asks them.

use std::time::Duration;

use rtorb::rt::{NetworkPriority, NetworkPriorityTable, Protocol, TcpProtocolProperties};
use rtorb::{OrbBuilder, Strategies};
use rtorb_results::ObtainedScheduling;
use serde::{Deserialize, Serialize};

use crate::contestants::real_time::corba;
use crate::error::LabError;
use crate::processes::child::word;
use crate::processes::{Launcher, Process};
use link::{End, Link};

pub mod clients;
pub mod flood;
pub mod link;
pub(crate) mod roles;
pub mod server;

/// What the clients are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// How long the urgent client calls.
    pub duration_ns: u64,
    /// The number of clients that transfer bulk data meanwhile.
    pub bulk_clients: usize,
}

/// The urgent calls of a run, and the bulk traffic beside them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The time of each urgent call, from its planned release to the reply. One that was skipped has the reply to the call that was
    /// made for it.
    pub times_ns: Vec<u64>,
    /// The urgent calls that were skipped, because the one before still ran.
    pub skipped: u64,
    /// Wrong answers to urgent calls.
    pub wrong: u64,
    /// The bulk data of all clients.
    pub bulk: Traffic,
    /// The scheduling of the clients' threads.
    pub scheduling: Vec<ObtainedScheduling>,
}

/// Bulk data that went over the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// The bytes in each of the two directions.
    pub bytes: u64,
    /// The time in which they were transferred.
    pub elapsed_ns: u64,
}

/// A running server and its clients.
#[derive(Debug)]
pub struct Pair {
    // In this order: the clients are ended before the server that they are connected to.
    clients: Process,
    server: Process,
}

impl Pair {
    /// Starts a server and clients at the ends of the link. With `marks`, both mark their packets by priority.
    ///
    /// # Errors
    /// That they do not start.
    pub fn start(launcher: &Launcher, link: &Link, marks: bool) -> Result<Self, LabError> {
        let name = if marks {
            "marked packets"
        } else {
            "unmarked packets"
        };
        let marks = word(marks);
        let endpoint = format!("iiop://{}:0", End::Server.address());
        let role = ["packet-server", &marks, &endpoint];
        let server_name = format!("{name} server");
        let server = link.start_at(End::Server, launcher, &server_name, &role)?;
        let mut role = vec!["packet-clients", &marks];
        role.extend(server.words());
        let clients_name = format!("{name} clients");
        let clients = link.start_at(End::Clients, launcher, &clients_name, &role)?;
        Ok(Self { clients, server })
    }

    /// Has the clients make a run.
    ///
    /// # Errors
    /// What went wrong in a process, or that it ended or was silent.
    pub fn run(&mut self, run: &Run) -> Result<Calls, LabError> {
        let within = Duration::from_nanos(run.duration_ns);
        let mut calls: Calls = self.clients.ask(run, within)?;
        calls
            .scheduling
            .extend(self.server.scheduling_by_priority());
        Ok(calls)
    }
}

/// The CORBA priority of the urgent client and its object, which is the native one too. The processes' own threads have 50.
pub const URGENT: u8 = 60;
/// The same of the bulk clients.
pub const BULK: u8 = 40;
/// The DSCP of urgent packets: expedited forwarding (RFC 3246).
pub const URGENT_DSCP: u8 = 46;
/// The bytes of a bulk transfer, in each direction.
pub const BULK_BYTES: usize = 16 << 10;

/// An ORB whose threads, connections and lanes belong to one priority each, and that would mark urgent packets.
fn builder() -> Result<OrbBuilder, String> {
    let urgent = NetworkPriority {
        dscp: URGENT_DSCP,
        // Before all others in `pfifo_fast` and `prio` (tc-prio(8)).
        socket_priority: 6,
    };
    let table = NetworkPriorityTable::default().with(corba(URGENT)?, urgent);
    Ok(rtorb::Orb::builder()
        .strategies(Strategies::TAO)
        .network_priority_mapping(table))
}

/// TCP whose packets are marked, or not.
fn tcp(marks: bool) -> Vec<Protocol> {
    vec![Protocol::Tcp(TcpProtocolProperties {
        enable_network_priority: marks,
        ..TcpProtocolProperties::default()
    })]
}

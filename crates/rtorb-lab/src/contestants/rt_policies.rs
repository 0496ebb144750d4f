//! Urgent calls beside other calls to the same server, without and with one of the policies of RT-CORBA.
//!
//! A [`server`] has the policy in force or not, and so have its [`clients`]. A [`System`] is both, as the laboratory starts and asks
//! them; a nested call has a second server in the middle.
//!
//! All clients are released together, once a period: the others call at once, and the urgent one a little later, when the others'
//! calls are in progress. How much later differs from call to call, so that it meets the others' calls in all their parts.

use std::fmt;
use std::time::Duration;

use rtorb_results::ObtainedScheduling;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray, VariantNames};

use crate::error::LabError;
use crate::processes::child::word;
use crate::processes::{Launcher, Process};

pub mod clients;
pub(crate) mod roles;
pub mod server;

#[allow(missing_docs, clippy::all, reason = "generated")]
mod idl {
    rtorb::include_idl!("stage");
}

/// A policy of RT-CORBA.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
    VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum RtPolicy {
    /// A lane whose threads are all busy borrows an idle thread of a less urgent lane (ThreadpoolPolicy).
    Borrowing,
    /// Requests wait in their lane while all its threads are busy, up to a bound (ThreadpoolPolicy).
    Buffering,
    /// Each band of priorities has a connection of its own (PriorityBandedConnectionPolicy).
    Bands,
    /// The servants of a chain of calls have the priority of its client (PriorityModelPolicy): CLIENT_PROPAGATED instead of
    /// SERVER_DECLARED.
    NestedPriority,
}

impl RtPolicy {
    /// All of them, in the order in which they are measured.
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// The value of the label `policy`.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// The number of servants on the way of a call.
    #[must_use]
    pub const fn servants(self) -> u8 {
        match self {
            Self::NestedPriority => 2,
            _ => 1,
        }
    }

    /// The calls beside the urgent one.
    #[must_use]
    pub const fn others(self) -> Others {
        match self {
            // The call that keeps the urgent lane's only thread busy is as urgent.
            Self::Borrowing => Others {
                clients: 1,
                priority: URGENT,
                work: Work::Wait { us: BUSY_US },
                period_ns: 2_000_000,
            },
            Self::Buffering => Others {
                clients: BURST,
                priority: LOW,
                work: Work::Wait { us: BURST_WAIT_US },
                period_ns: 6_000_000,
            },
            Self::Bands | Self::NestedPriority => Others {
                clients: LOW_CLIENTS,
                priority: LOW,
                work: Work::Compute {
                    ns: LOW_COMPUTATION_US as u64 * 1_000,
                },
                period_ns: 2_500_000,
            },
        }
    }
}

/// The calls beside the urgent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// Each has a thread and makes a call a period.
    pub clients: usize,
    /// The CORBA priority of the clients, which is the native one too.
    pub priority: u8,
    /// What the servant does.
    pub work: Work,
    /// From one release of all clients to the next. Calls take about half of it.
    pub period_ns: u64,
}

/// What keeps a servant's thread busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It computes.
    Compute {
        /// For about so long.
        ns: u64,
    },
    /// It waits, as for a device. Other threads have the CPU meanwhile.
    Wait {
        /// For so long.
        us: u32,
    },
}

/// A policy that is in force or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Which policy.
    pub policy: RtPolicy,
    /// Whether it is in force.
    pub is_on: bool,
}

impl Setting {
    /// The value of the label `setting`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        if self.is_on { "on" } else { "off" }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.policy.word(), self.word())
    }
}

/// What the clients are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The number of calls of each client.
    pub calls: usize,
    /// Whether the others call too.
    pub has_others: bool,
}

/// The calls of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Those of the urgent client.
    pub urgent: Times,
    /// Those of all others.
    pub others: Times,
    /// The scheduling of the threads of all processes.
    pub scheduling: Vec<ObtainedScheduling>,
}

/// The times of calls, in no order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// From when the request was to be sent to the reply.
    pub served_ns: Vec<u64>,
    /// From when the request was to be sent to the exception TRANSIENT, by which a server refuses a request that has no room.
    pub refused_ns: Vec<u64>,
    /// The number of wrong replies.
    pub wrong: u64,
}

/// A running server and its clients.
#[derive(Debug)]
pub struct System {
    // In this order: each process is ended before those that it calls.
    clients: Process,
    middle: Option<Process>,
    server: Process,
}

impl System {
    /// Starts all processes.
    ///
    /// # Errors
    /// That they do not start.
    pub fn start(launcher: &Launcher, setting: Setting) -> Result<Self, LabError> {
        let endpoint = launcher.server_endpoint();
        let in_force = word(setting);
        let start = |name: &str, role: &[&str], next: Option<&Process>| {
            let next = next.into_iter().flat_map(Process::words);
            let role: Vec<&str> = role.iter().copied().chain(next).collect();
            launcher.start(&format!("{setting} {name}"), &role)
        };
        let role = ["rt-policy-server", &in_force, &endpoint];
        let server = start("server", &role, None)?;
        let middle = (setting.policy.servants() > 1)
            .then(|| start("middle server", &role, Some(&server)))
            .transpose()?;
        let next = middle.as_ref().unwrap_or(&server);
        let clients = start("clients", &["rt-policy-clients", &in_force], Some(next))?;
        Ok(Self {
            clients,
            middle,
            server,
        })
    }

    /// Has the clients make a run.
    ///
    /// # Errors
    /// What went wrong in a process, or that it ended or was silent.
    pub fn run(&mut self, run: &Run, within: Duration) -> Result<Calls, LabError> {
        let mut calls: Calls = self.clients.ask(run, within)?;
        let servers = [&self.server].into_iter().chain(&self.middle);
        calls
            .scheduling
            .extend(servers.flat_map(Process::scheduling_by_priority));
        Ok(calls)
    }
}

/// The priority of the urgent client, and of the lane that serves it.
pub const URGENT: u8 = 60;
/// The priority of the other clients, if they are less urgent, and of the lane that serves them.
pub const LOW: u8 = 40;
/// The priority that objects declare for all clients, without nested priority.
pub const DECLARED: u8 = 50;
/// The clients of a burst, each of which sends a request at the same time.
pub const BURST: usize = 8;
/// How long a servant waits during a request of a burst.
pub const BURST_WAIT_US: u32 = 500;
/// The requests that wait in a lane at most, with buffering.
pub const BUFFERED_MAX: u32 = 2;
/// The less urgent clients of bands and nested priority.
pub const LOW_CLIENTS: usize = 3;
/// How long the servant waits that keeps the thread of the urgent lane busy, where borrowing is measured.
pub const BUSY_US: u32 = 1_000;
/// About how long a servant computes for a less urgent client of bands and nested priority.
pub const LOW_COMPUTATION_US: u32 = 400;
/// How long after the others the urgent client calls, at least and at most: from one call of low priority to the next.
pub const URGENT_OFFSETS_US: [u32; 2] = [200, 600];

#[cfg(test)]
mod tests;

//! The clients, and their server if it is in the same process, whose context switches are counted.

use std::collections::BTreeMap;

use rtorb::thread::ThreadConfig;
use rtorb_instruments::usage;
use rtorb_os::thread::spawn;
use serde::{Deserialize, Serialize};

use crate::contestants::rates::clients::Clients;
use crate::contestants::rates::server::{RateObject, Server};
use crate::contestants::rates::{FirstReleases, Group, Releases, Run, priority_of_pair};
use crate::processes::probe::{self, Answer};

/// Every client calls so often, one call after another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The objects of a server in another process, those of low priority first; none has the server in this process.
    pub references: Vec<String>,
    /// Threads have SCHED_FIFO, each client's one with another priority.
    pub real_time: bool,
    /// Beside the high-priority one.
    pub low_clients: usize,
    /// Of each client.
    pub calls: usize,
}

impl probe::Question for Question {
    const ROLE: &'static str = "switches-probe";

    fn answer(&self) -> Result<Answer, String> {
        if !self.references.is_empty() {
            return self.count(&self.references);
        }
        let objects: Vec<RateObject> = objects(self.real_time, self.low_clients).collect();
        let server = Server::open("iiop://127.0.0.1:0", PRESET, &objects)?;
        let orb = server.objects().orb().clone();
        let serving = spawn("server", &ThreadConfig::default(), move || orb.run());
        let serving = serving.map_err(|refused| refused.to_string())?;
        let counted = self.count(server.objects().references());
        server.objects().orb().shutdown();
        // It ends with the ORB.
        let _ = serving.join();
        counted
    }
}

impl Question {
    fn count(&self, references: &[String]) -> Result<Answer, String> {
        let mut clients = Clients::open(PRESET, references)?;
        let last = references.len().saturating_sub(1);
        let group = |(object, client): (usize, usize)| Group {
            object,
            priority: priority(self.real_time, client),
            clients: 1,
            period_ns: PERIOD_NS,
            calls: self.calls,
            releases: Releases::Each,
        };
        let low = (0..self.low_clients).map(|object| (object, object + 1));
        clients.prepare(&Run {
            duration_ns: 1,
            round: 0,
            first: FirstReleases::Together,
            groups: low.chain([(last, 0)]).map(group).collect(),
        })?;
        let all = || {
            let switches = usage::of_process().switches;
            switches.voluntary + switches.involuntary
        };
        let before = all();
        let ran = clients.go()?;
        let switches = all() - before;
        let wrong: u64 = ran.groups.iter().map(|times| times.wrong).sum();
        if wrong > 0 {
            return Err(format!("{wrong} answers were wrong"));
        }
        Ok(Answer {
            numbers: BTreeMap::from([(SWITCHES.to_owned(), switches as f64)]),
            ..Answer::default()
        })
    }
}

/// The objects of a server, those of low priority first.
pub(super) fn objects(real_time: bool, low_clients: usize) -> impl Iterator<Item = RateObject> {
    let clients = (1..=low_clients).chain([0]);
    clients.map(move |client| RateObject {
        priority: priority(real_time, client),
        works: false,
    })
}

/// That of a client, the high-priority one first, and of its servant.
fn priority(real_time: bool, client: usize) -> u8 {
    if real_time {
        priority_of_pair(client)
    } else {
        0
    }
}

/// The number that has the context switches of the process.
pub(super) const SWITCHES: &str = "switches";
const PRESET: &str = "tao";
/// Each is released once.
const PERIOD_NS: u64 = 1_000_000_000;

//! Who is measured with clients that call at a rate: a server process and a process of clients, which stay alive while the
//! others have their turn.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use rtorb_results::ObtainedScheduling;

use super::entrant::{Entrant, ServerPriorities, Software};
use super::server::RateObject;
use super::{FirstReleases, Group, Ran, Run, ServerQuestion};
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::{Orb, rates, start_server};
use crate::error::LabError;
use crate::processes::awake::Awake;
use crate::processes::{Launcher, Process};

/// A running server and its clients.
#[derive(Debug)]
pub struct RateContestant {
    /// Which software.
    pub orb: Orb,
    /// The preset of strategies of ours, or the name of the peer: the label `preset`.
    pub preset: String,
    cpu: Option<usize>,
    /// Whether the server has a CPU of its own, here or on an agent.
    is_apart: bool,
    // In this order: the clients are ended before the server that they are connected to.
    clients: Process,
    server: Process,
}

/// What one run brought, the server's part included.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// What the clients told.
    pub ran: Ran,
    /// Processor time during the run.
    pub cpu: CpuShares,
}

/// Processor time of the two processes, each as a share of one CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CpuShares {
    /// Both together, on the CPU that they have in common.
    Together(f64),
    /// Each on a CPU of its own.
    Apart {
        /// Of the clients.
        clients: f64,
        /// Of the server.
        server: f64,
    },
}

impl CpuShares {
    /// Of the CPU that is busier: that one bounds how many calls there can be.
    #[must_use]
    pub fn of_the_busier(self) -> f64 {
        match self {
            Self::Together(share) => share,
            Self::Apart { clients, server } => clients.max(server),
        }
    }

    /// Each with the side that it is of; `None` for both together.
    pub fn by_side(self) -> impl Iterator<Item = (Option<&'static str>, f64)> {
        let (first, second) = match self {
            Self::Together(share) => ((None, share), None),
            Self::Apart { clients, server } => {
                ((Some("clients"), clients), Some((Some("server"), server)))
            }
        };
        std::iter::once(first).chain(second)
    }
}

impl Turn {
    /// Processor time that a call took on both sides together, or where they are on two hosts on the side where it took
    /// more; `None` when there was none.
    #[must_use]
    pub fn call_cost_ns(&self) -> Option<f64> {
        let calls: usize = self
            .ran
            .groups
            .iter()
            .map(|times| times.sent_ns.len())
            .sum();
        (calls > 0).then(|| self.cpu.of_the_busier() * self.ran.elapsed_ns as f64 / calls as f64)
    }
}

impl RateContestant {
    /// Starts an entrant, with its socket file in that folder; `None` when that is the peer, which is not installed.
    ///
    /// # Errors
    /// That its processes do not start; that the peer's server should run on an agent.
    pub fn start(
        launcher: &Launcher,
        folder: &Path,
        entrant: &Entrant,
        objects: &[RateObject],
    ) -> Result<Option<Self>, LabError> {
        let program;
        let (orb, server, mut clients) = match entrant.software() {
            Software::Rtorb(preset) => {
                let declares = entrant.priorities() == ServerPriorities::OfObjects;
                let socket = format!("rates-{}", entrant.name);
                let endpoint = entrant.transport.endpoint_in(folder, &socket);
                let endpoint = endpoint.unwrap_or_else(|| launcher.server_endpoint());
                let mut server = vec!["rate-server".to_owned(), endpoint, preset.to_owned()];
                server.extend(objects.iter().map(|object| {
                    let priority = if declares { object.priority } else { 0 };
                    RateObject {
                        priority,
                        ..*object
                    }
                    .to_string()
                }));
                let clients = ["rate-clients", preset].map(str::to_owned);
                (Orb::Rtorb, server, clients.to_vec())
            }
            Software::OmniOrb if launcher.agent().is_some() => {
                let what = omniorb::NOT_ON_AN_AGENT.to_owned();
                return Err(LabError::Peer { what });
            }
            Software::OmniOrb => {
                let Some(peer) = OmniOrb::find(&launcher.interrupt)? else {
                    return Ok(None);
                };
                program = peer.rates.display().to_string();
                let mut server = ["exec", &program, "server"].map(str::to_owned).to_vec();
                server.extend(omniorb::RATE_SERVER_OPTIONS.map(str::to_owned));
                server.extend(objects.iter().map(ToString::to_string));
                let clients = ["exec", &program, "clients"].map(str::to_owned);
                (Orb::OmniOrb, server, clients.to_vec())
            }
        };
        let there = launcher.placed(entrant.server);
        let name = format!("{entrant} server");
        let server = match orb {
            Orb::Rtorb => start_server(&there, entrant.transport, &name, &server),
            Orb::OmniOrb | Orb::Iceoryx2 | Orb::Raw => there.start(&name, &server),
        }?;
        clients.extend(server.words().map(str::to_owned));
        let clients = launcher.start(&format!("{entrant} clients"), &clients)?;
        let cpus = [launcher.placement.cpu, entrant.server.cpu];
        Ok(Some(Self {
            orb,
            preset: entrant.name.clone(),
            cpu: launcher.placement.cpu,
            is_apart: launcher.agent().is_some() || cpus[0] != cpus[1],
            clients,
            server,
        }))
    }

    /// From now on each request to an object that works takes so much processor time.
    ///
    /// # Errors
    /// As [`Process::ask`].
    pub fn set_work(&mut self, work_us: u64) -> Result<(), LabError> {
        let question = ServerQuestion::Work(work_us * 1_000);
        self.server.ask::<u64>(&question, Duration::ZERO).map(drop)
    }

    /// Has the clients make a run, on a CPU that is kept awake.
    ///
    /// # Errors
    /// What went wrong in either process, or that it ended or was silent.
    pub fn run(&mut self, run: &Run) -> Result<Turn, LabError> {
        self.prepare(run)?;
        self.go(run)
    }

    /// What the threads of both processes have, read while clients of these groups wait at the barrier.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn roll_call(&mut self, groups: &[Group]) -> Result<Vec<ObtainedScheduling>, LabError> {
        let run = Run {
            duration_ns: ROLL_CALL_NS,
            round: 0,
            first: FirstReleases::Spread,
            groups: groups.to_vec(),
        };
        self.prepare(&run)?;
        let scheduling = [&self.server, &self.clients]
            .into_iter()
            .flat_map(Process::scheduling_by_priority)
            .collect();
        self.go(&run)?;
        Ok(scheduling)
    }

    /// Processor time that a call costs ([`Turn::call_cost_ns`]) when these low-priority clients call an object that works now.
    ///
    /// It is found in two runs, the second with the rate that the first says: many calls a release cost less each, and
    /// many clients more.
    ///
    /// # Errors
    /// As [`Self::run`]; that no call was made.
    pub fn calibrate(&mut self, groups: &[Group], work_us: u64) -> Result<f64, LabError> {
        let guess_ns = (work_us * 1_000 + CALL_COST_GUESS_NS) as f64;
        let first_ns = self.call_cost_ns(groups, guess_ns)?;
        self.call_cost_ns(groups, first_ns)
    }

    fn call_cost_ns(&mut self, groups: &[Group], guess_ns: f64) -> Result<f64, LabError> {
        let mut groups = groups.to_vec();
        saturate(&mut groups, guess_ns, CALIBRATION_SHARE);
        let longest_ns = groups.iter().map(|group| group.period_ns).max();
        let run = Run {
            duration_ns: CALIBRATION_NS.max(2 * longest_ns.unwrap_or(0)),
            round: 0,
            first: FirstReleases::Spread,
            groups,
        };
        let cost_ns = self.run(&run)?.call_cost_ns();
        cost_ns
            .ok_or_else(|| LabError::process(self.clients.name(), "made no call to calibrate by"))
    }

    fn prepare(&mut self, run: &Run) -> Result<(), LabError> {
        rates::prepare(&mut self.clients, run)
    }

    fn go(&mut self, run: &Run) -> Result<Turn, LabError> {
        let duration = Duration::from_nanos(run.duration_ns);
        let awake = Awake::keep(self.cpu, duration + AWAKE_LONGER);
        let before_ns = self.server_cpu_ns()?;
        let ran = rates::go(&mut self.clients, duration)?;
        let server_ns = self.server_cpu_ns()?.saturating_sub(before_ns);
        drop(awake);
        let share = |cpu_ns: u64| cpu_ns as f64 / ran.elapsed_ns.max(1) as f64;
        let cpu = if self.is_apart {
            CpuShares::Apart {
                clients: share(ran.cpu_ns),
                server: share(server_ns),
            }
        } else {
            CpuShares::Together(share(ran.cpu_ns + server_ns))
        };
        Ok(Turn { ran, cpu })
    }

    fn server_cpu_ns(&mut self) -> Result<u64, LabError> {
        self.server.ask(&ServerQuestion::Cpu, Duration::ZERO)
    }
}

impl fmt::Display for RateContestant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.preset.fmt(formatter)
    }
}

/// Sets the rate at which the clients of these groups together keep the CPU busy to `share`, each call taking `call_cost_ns`
/// on both sides.
pub fn saturate(groups: &mut [Group], call_cost_ns: f64, share: f64) {
    let clients: usize = groups.iter().map(|group| group.clients).sum();
    let period_ns = clients as f64 * call_cost_ns / share;
    // More releases than so many a second would measure the timer.
    let calls = (RELEASE_PERIOD_NS_MIN / period_ns.max(1.0)).ceil().max(1.0);
    for group in groups {
        group.calls = calls as usize;
        group.period_ns = (period_ns * calls).round() as u64;
    }
}

const RELEASE_PERIOD_NS_MIN: f64 = 200_000.0;
const ROLL_CALL_NS: u64 = 10_000_000;
const CALIBRATION_NS: u64 = 100_000_000;
/// Below what is wanted: a first guess that is too low must not fill the CPU.
const CALIBRATION_SHARE: f64 = 0.6;
/// Any call of an ORB here takes less.
const CALL_COST_GUESS_NS: u64 = 50_000;
/// Beyond the run itself: until all have answered.
const AWAKE_LONGER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::rates::{Releases, Times};

    fn low(clients: usize) -> Group {
        Group {
            object: 0,
            priority: 10,
            clients,
            period_ns: 1,
            calls: 1,
            releases: Releases::Latest,
        }
    }

    #[test]
    fn saturating_clients_share_what_the_cpu_can_do() {
        let mut fifty = [low(20), low(30)];
        saturate(&mut fifty, 515_000.0, 0.9);
        for group in &fifty {
            assert_eq!((group.calls, group.period_ns), (1, 28_611_111));
        }
        // One client that calls every 11 us is released less often and makes several calls each time.
        let mut one = [low(1)];
        saturate(&mut one, 10_000.0, 0.9);
        assert_eq!((one[0].calls, one[0].period_ns), (18, 200_000));
    }

    #[test]
    fn the_cost_of_a_call_is_that_of_both_processes() {
        let times = Times {
            sent_ns: vec![1; 20],
            ..Times::default()
        };
        let turn = Turn {
            ran: Ran {
                elapsed_ns: 1_000_000,
                cpu_ns: 0,
                groups: vec![times],
            },
            cpu: CpuShares::Together(0.5),
        };
        assert_eq!(turn.call_cost_ns(), Some(25_000.0));
        // Of two hosts, the busier one bounds how many calls there are.
        let apart = CpuShares::Apart {
            clients: 0.2,
            server: 0.6,
        };
        assert!((apart.of_the_busier() - 0.6).abs() < 1e-9);
        let sides: Vec<_> = apart.by_side().collect();
        assert_eq!(sides, [(Some("clients"), 0.2), (Some("server"), 0.6)]);
        let nothing = Turn {
            ran: Ran::default(),
            cpu: CpuShares::Together(0.5),
        };
        assert_eq!(nothing.call_cost_ns(), None);
    }
}

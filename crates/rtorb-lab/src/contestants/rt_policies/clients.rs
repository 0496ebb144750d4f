//! The clients: an urgent one, and others beside it.

use rtorb::exception::OMG;
use rtorb::rt::{Policy, PriorityBand};
use rtorb::{ConnectionStrategy, ExceptionKind, Orb, OrbBuilder, SystemException, WaitStrategy};
use rtorb_host::placement::obtained_by_priority;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::timer::PeriodicTimer;

use super::idl::Stage;
use super::{Calls, DECLARED, RtPolicy, Run, Setting, Times, URGENT, URGENT_OFFSETS_US, Work};
use crate::contestants::clients::{fifo, open};
use crate::contestants::rates::GOLDEN;
use crate::processes::barrier::Barrier;
use crate::processes::computation::Computation;
use crate::processes::questions;

/// The clients of the two objects of a [`server`](super::server).
#[derive(Debug)]
pub struct Clients {
    policy: RtPolicy,
    urgent_stage: Stage,
    other_stage: Stage,
    /// The arguments of the other calls.
    arguments: Arguments,
}

impl Clients {
    /// Makes an ORB and takes the references, of the object for urgent calls and of that for the others.
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(setting: Setting, references: [&str; 2]) -> Result<Self, String> {
        let mut stages = open(builder(setting), &references)?.into_iter();
        let mut next = || stages.next().ok_or("the ORB made too few objects");
        Ok(Self {
            policy: setting.policy,
            urgent_stage: next()?,
            other_stage: next()?,
            arguments: Arguments::of(setting.policy.others().work)?,
        })
    }

    /// Makes a [`Run`] for each question, until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub fn serve(self) -> Result<(), String> {
        questions::serve(|run: Run| self.run(&run))
    }

    /// Makes a run.
    ///
    /// # Errors
    /// That it has too many calls, what the host refused, or that a call failed.
    pub fn run(&self, run: &Run) -> Result<Calls, String> {
        if run.calls > CALLS_MAX {
            return Err(format!(
                "{} calls of each client are too many: at most {CALLS_MAX}",
                run.calls
            ));
        }
        let others = self.policy.others();
        let client = |stage: &Stage, arguments, offset_ns: fn(usize) -> u64| Client {
            stage: stage.clone(),
            arguments,
            servants: self.policy.servants(),
            offset_ns,
            period_ns: others.period_ns,
            calls: run.calls,
        };
        let mut barrier = Barrier::default();
        let other_clients = if run.has_others { others.clients } else { 0 };
        for _ in 0..other_clients {
            let client = client(&self.other_stage, self.arguments, |_| 0);
            barrier.add("other", &fifo(others.priority), || client.prepare())?;
        }
        let urgent = client(&self.urgent_stage, Arguments::default(), urgent_offset_ns);
        barrier.add("urgent", &fifo(URGENT), || urgent.prepare())?;
        barrier.await_all()?;
        let scheduling = obtained_by_priority("clients", std::process::id());
        let mut times = barrier.run(&(monotonic_ns() + BARRIER_NS))?;
        let urgent = times.pop().ok_or("there was no urgent client")?;
        if !urgent.refused_ns.is_empty() {
            return Err(format!(
                "the server refused {} urgent calls",
                urgent.refused_ns.len()
            ));
        }
        Ok(Calls {
            urgent,
            others: times.into_iter().fold(Times::default(), Times::with),
            scheduling,
        })
    }
}

/// An ORB whose threads have a connection each. Where bands are measured, they share one, or one for each band.
fn builder(setting: Setting) -> OrbBuilder {
    let builder = Orb::builder();
    if setting.policy != RtPolicy::Bands {
        return builder;
    }
    let bands = if setting.is_on {
        BANDS.to_vec()
    } else {
        Vec::new()
    };
    builder
        .connection(ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::Read,
        })
        .client_policies([Policy::PriorityBandedConnection(bands)])
}

impl Times {
    fn with(mut self, other: Self) -> Self {
        self.served_ns.extend(other.served_ns);
        self.refused_ns.extend(other.refused_ns);
        self.wrong += other.wrong;
        self
    }
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Arguments {
    steps: u32,
    wait_us: u32,
}

impl Arguments {
    fn of(work: Work) -> Result<Self, String> {
        match work {
            Work::Wait { us: wait_us } => Ok(Self { steps: 0, wait_us }),
            Work::Compute { ns } => {
                let steps = Computation::lasting(ns).steps;
                let steps = u32::try_from(steps).map_err(|_| format!("{steps} steps are too many"));
                Ok(Self {
                    steps: steps?,
                    wait_us: 0,
                })
            }
        }
    }
}

/// What one thread has.
struct Client {
    stage: Stage,
    arguments: Arguments,
    /// The number of servants on the way of a call.
    servants: u8,
    /// From the release of all clients to its call of this number.
    offset_ns: fn(usize) -> u64,
    period_ns: u64,
    calls: usize,
}

impl Client {
    /// Makes a few calls, and returns what makes those of the run.
    fn prepare(self) -> Result<impl FnOnce(u64) -> Result<Times, String>, String> {
        let times = Times {
            served_ns: Vec::with_capacity(self.calls),
            refused_ns: Vec::with_capacity(self.calls),
            wrong: 0,
        };
        for wait_us in WARM_UP_WAITS_US {
            self.call(Arguments { steps: 0, wait_us })?;
        }
        Ok(move |begin_ns| self.run(begin_ns, times))
    }

    fn run(&self, begin_ns: u64, mut times: Times) -> Result<Times, String> {
        let mut timer = PeriodicTimer::starting_at(begin_ns, self.period_ns);
        for call in 0..self.calls {
            let release = timer.wait_each();
            let planned_ns = release.scheduled_ns + (self.offset_ns)(call);
            sleep_until(planned_ns);
            let servants = self.call(self.arguments)?;
            let time_ns = monotonic_ns() - planned_ns;
            match servants {
                Some(servants) => {
                    times.served_ns.push(time_ns);
                    times.wrong += u64::from(servants != self.servants);
                }
                None => times.refused_ns.push(time_ns),
            }
        }
        Ok(times)
    }

    /// Calls: the number of servants on the way; `None` if the server had no room for the request.
    fn call(&self, arguments: Arguments) -> Result<Option<u8>, String> {
        match self.stage.pass(arguments.steps, arguments.wait_us) {
            Ok(servants) => Ok(Some(servants)),
            Err(exception) if is_no_room(&exception) => Ok(None),
            Err(exception) => Err(format!("a call: {exception}")),
        }
    }
}

/// Multiples of the golden ratio spread the calls evenly, however many there are.
fn urgent_offset_ns(call: usize) -> u64 {
    let [first_us, last_us] = URGENT_OFFSETS_US.map(f64::from);
    let part = (call as f64 * GOLDEN).fract();
    (1e3 * (first_us + part * (last_us - first_us))) as u64
}

fn is_no_room(exception: &SystemException) -> bool {
    exception.kind == ExceptionKind::Transient && exception.minor == OMG | 1
}

const BANDS: [PriorityBand; 2] = [
    PriorityBand {
        low: 0,
        high: DECLARED as i16 - 1,
    },
    PriorityBand {
        low: DECLARED as i16,
        high: 99,
    },
];
/// How long the servants wait in the calls before a run. During the first one the clients meet in the servers, so that each of the
/// threads there opens its connections.
const WARM_UP_WAITS_US: [u32; 3] = [500, 0, 0];
/// Time enough for all clients to hear it before the first release.
const BARRIER_NS: u64 = 2_000_000;
/// A line with the times of so many calls of each client is half as long as the laboratory reads.
const CALLS_MAX: usize = 5_000;

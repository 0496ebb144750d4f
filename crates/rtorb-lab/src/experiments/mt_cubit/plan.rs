//! How much is measured: the loads, the numbers of clients, the rates.

use std::fmt;
use std::time::Duration;

use rtorb_results::labels;

use crate::contestants::rates::contestants::saturating;
use crate::contestants::rates::server::POOL_THREADS;
use crate::contestants::rates::{Group, Releases, Run};
use crate::experiment::{Effort, Parameters};

/// What one of the experiments of this kind measures.
#[derive(Clone, Debug)]
pub(in crate::experiments) struct Plan {
    pub(in crate::experiments) effort: Effort,
    /// Each with every contestant and cell once.
    pub(in crate::experiments) rounds: usize,
    /// Presets of ours, in the order of the report.
    pub(in crate::experiments) presets: &'static [&'static str],
    /// Whether the peer takes part.
    pub(in crate::experiments) with_peer: bool,
    /// How often a second the high-priority client calls.
    pub(in crate::experiments) high_hz: u64,
    /// How long each run under the papers' own condition takes.
    pub(in crate::experiments) run: Duration,
    /// How long each run under another condition takes.
    pub(in crate::experiments) run_of_others: Duration,
    /// What the low-priority clients do.
    pub(in crate::experiments) conditions: &'static [Condition],
    /// How many of them there are.
    pub(in crate::experiments) low_clients: &'static [usize],
    /// What a reader must know that a plan with more effort has.
    pub(in crate::experiments) leaves_out: Option<&'static str>,
}

/// What low-priority clients do, and what their requests cost the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::experiments) struct Condition {
    pub(in crate::experiments) load: Load,
    pub(in crate::experiments) servant_work_us: u64,
}

impl Condition {
    pub(in crate::experiments) const fn new(load: Load, servant_work_us: u64) -> Self {
        Self {
            load,
            servant_work_us,
        }
    }
}

/// The load of the papers, with requests that do no work.
const PAPERS: Condition = Condition::new(Load::TenHertz, 0);

/// The papers' own, and those that are harder today: requests that hold their servant, a CPU that is busy.
pub(in crate::experiments) const CONDITIONS: [Condition; 4] = [
    PAPERS,
    Condition::new(Load::TenHertz, 500),
    Condition::new(Load::Saturating, 0),
    Condition::new(Load::Saturating, 500),
];

/// The papers' own and the hardest one.
pub(in crate::experiments) const EXTREMES: [Condition; 2] =
    [PAPERS, Condition::new(Load::Saturating, 500)];

/// That of them in which an architecture shows what it is.
pub(in crate::experiments) const HARDEST: [Condition; 1] = [Condition::new(Load::Saturating, 500)];

/// At which rate low-priority clients call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::experiments) enum Load {
    /// 10 times a second each, as in the papers.
    TenHertz,
    /// So often that all together they keep the CPU busy to [`SATURATING_SHARE`].
    Saturating,
}

impl Load {
    /// The value of the label `load`.
    pub(in crate::experiments) fn label(self) -> &'static str {
        match self {
            Self::TenHertz => "10hz",
            Self::Saturating => "saturating",
        }
    }
}

/// What is measured at once: so many low-priority clients of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::experiments) struct Cell {
    pub(in crate::experiments) condition: Condition,
    pub(in crate::experiments) low_clients: usize,
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition {
            load,
            servant_work_us,
        } = self.condition;
        let (low_clients, load) = (self.low_clients, load.label());
        let clients = match low_clients {
            1 => "client",
            _ => "clients",
        };
        write!(
            formatter,
            "{low_clients} low-priority {clients}, {load}, {servant_work_us} us of work"
        )
    }
}

impl Plan {
    /// Every cell, those without low-priority clients first: they are what the others of their condition are compared with.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let cell = |condition: &Condition, low_clients: &usize| Cell {
            condition: *condition,
            low_clients: *low_clients,
        };
        self.conditions
            .iter()
            .flat_map(|condition| self.low_clients.iter().map(move |n| cell(condition, n)))
            .collect()
    }

    /// The run of a cell. `call_cost_ns` is what a low-priority call takes on both sides.
    pub(super) fn run(&self, cell: Cell, round: usize, call_cost_ns: f64, real_time: bool) -> Run {
        let mut groups = vec![Group {
            period_ns: NS_PER_S / self.high_hz,
            ..high(real_time)
        }];
        if cell.low_clients > 0 {
            let group = Group {
                clients: cell.low_clients,
                ..low(real_time)
            };
            groups.push(match cell.condition.load {
                Load::TenHertz => group,
                Load::Saturating => saturating(&group, call_cost_ns, SATURATING_SHARE),
            });
        }
        let duration = self.run_of(cell.condition);
        Run {
            duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            round,
            groups,
        }
    }

    fn run_of(&self, condition: Condition) -> Duration {
        if condition == PAPERS {
            self.run
        } else {
            self.run_of_others
        }
    }

    /// What all runs of all contestants take together.
    fn paced(&self) -> Duration {
        let contestants = self.presets.len() + usize::from(self.with_peer);
        let cells = self.cells();
        let round: Duration = cells.iter().map(|cell| self.run_of(cell.condition)).sum();
        round * (self.rounds * contestants) as u32
    }

    /// What a run with this plan does.
    pub(in crate::experiments) fn parameters(&self) -> Parameters {
        let list =
            |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(" ");
        let conditions =
            list(&mut self.conditions.iter().map(|condition| {
                format!("{}/{}", condition.load.label(), condition.servant_work_us)
            }));
        let clients = list(&mut self.low_clients.iter().map(ToString::to_string));
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        labels([
            ("effort", self.effort.name().into()),
            ("rounds", self.rounds.into()),
            ("presets", self.presets.join(" ").into()),
            ("high_hz", self.high_hz.into()),
            ("low_hz", LOW_HZ.into()),
            ("low_clients", clients.into()),
            ("conditions_load_and_work_us", conditions.into()),
            ("run_ms", ms(self.run).into()),
            ("run_of_others_ms", ms(self.run_of_others).into()),
            ("paced_seconds", self.paced().as_secs().into()),
            (
                "saturating_cpu_percent",
                ((SATURATING_SHARE * 100.0) as u64).into(),
            ),
            ("priority_high", u32::from(HIGH).into()),
            ("priority_low", u32::from(LOW).into()),
            ("pool_threads", POOL_THREADS.into()),
        ])
    }
}

/// The high-priority client, which calls the second object.
pub(super) fn high(real_time: bool) -> Group {
    Group {
        object: 1,
        priority: if real_time { HIGH } else { 0 },
        clients: 1,
        period_ns: NS_PER_S / LOW_HZ,
        calls: 1,
        releases: Releases::Each,
    }
}

/// A low-priority client, which calls the first object.
pub(super) fn low(real_time: bool) -> Group {
    Group {
        object: 0,
        priority: if real_time { LOW } else { 0 },
        releases: Releases::Latest,
        ..high(real_time)
    }
}

/// Rounds of a host; an emulated machine has one a seed.
pub(in crate::experiments) const ROUNDS: usize = 5;
/// In an emulated machine: with [`EMULATED_HZ`], 100 calls of the high-priority client a seed.
pub(in crate::experiments) const EMULATED: Duration = Duration::from_millis(100);
/// How often the high-priority client calls in an emulated machine, where idle time costs nothing.
pub(in crate::experiments) const EMULATED_HZ: u64 = 1_000;
/// SCHED_FIFO of the high-priority client and of what serves it: above that of the processes themselves.
pub(in crate::experiments) const HIGH: u8 = 60;
/// SCHED_FIFO of low-priority clients: below that of the processes themselves.
pub(in crate::experiments) const LOW: u8 = 10;
/// Below the 95 % from which on the kernel holds real-time threads back.
pub(in crate::experiments) const SATURATING_SHARE: f64 = 0.9;
/// As in P0 3.3 and P1 2.1.2.
const LOW_HZ: u64 = 10;
const NS_PER_S: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        effort: Effort::Quick,
        rounds: ROUNDS,
        presets: &["tao"],
        with_peer: false,
        high_hz: 20,
        run: Duration::from_millis(400),
        run_of_others: Duration::from_millis(100),
        conditions: &CONDITIONS,
        low_clients: &[0, 50],
        leaves_out: None,
    };

    #[test]
    fn every_condition_has_its_own_cell_without_clients() {
        let cells = PLAN.cells();
        assert_eq!(cells.len(), 8);
        assert_eq!(cells.iter().filter(|cell| cell.low_clients == 0).count(), 4);
    }

    #[test]
    fn the_rates_are_those_of_the_papers_or_fill_the_cpu() {
        let cells = PLAN.cells();
        let run = PLAN.run(cells[3], 3, 510_000.0, true);
        assert_eq!((run.round, run.groups.len()), (3, 2));
        assert_eq!(run.groups[0].period_ns, 50_000_000);
        assert_eq!(run.groups[1].period_ns, 100_000_000);
        assert!(run.groups[0].priority > run.groups[1].priority);
        let run = PLAN.run(cells[7], 0, 510_000.0, false);
        let low = &run.groups[1];
        let share = 510_000.0 * 50.0 / low.period_ns as f64;
        assert!((share - SATURATING_SHARE).abs() < 1e-3);
        assert_eq!(low.priority, 0);
        assert_eq!(PLAN.run(cells[0], 0, 1.0, true).groups.len(), 1);
    }

    #[test]
    fn the_papers_condition_has_runs_of_its_own_length() {
        let lengths: Vec<u64> = PLAN
            .cells()
            .into_iter()
            .map(|cell| PLAN.run(cell, 0, 510_000.0, true).duration_ns)
            .collect();
        let (papers, others) = (400_000_000, 100_000_000);
        assert_eq!(lengths[..3], [papers, papers, others]);
        assert_eq!(PLAN.paced(), Duration::from_millis(5 * (2 * 400 + 6 * 100)));
    }
}

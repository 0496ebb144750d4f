//! Who takes part, and how the clients call.

use std::collections::BTreeMap;

use rtorb_host::placement::Placement;
use rtorb_results::{Labels, ObtainedScheduling, labels};

use super::{
    ABOVE, BELOW, BETWEEN, HIGH, LOAD, LOW, LOW_CLIENTS, LOW_HZ, PLACEMENT, PRESET, RELEASE,
    SATURATING, SATURATING_SHARE, SERVER_CPU, TOGETHER, TWO_HOSTS, URGENCY, WORK,
};
use crate::contestants::burst::{Burst, Verb};
use crate::contestants::operations::Operation;
use crate::contestants::rates::contestants::{RateContestant, Turn as Ran, saturating};
use crate::contestants::rates::line_up;
use crate::contestants::rates::server::RateObject;
use crate::contestants::rates::{FirstReleases, Group, Releases, Run};
use crate::contestants::{Contestant, Orb, Transport};
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::probe::Answer;
use crate::study::{Cell, Sampled, Subject, Turn};

/// The raw exchange, and everybody who can take part.
#[derive(Debug)]
pub struct LineUp {
    raw: Contestant,
    others: line_up::LineUp,
    clients: Clients,
    /// Servers were left out that need a CPU or a host of their own.
    lacks_place: bool,
    /// Processor time of a low-priority call, by what it depends on.
    call_costs_ns: BTreeMap<Labels, f64>,
}

/// How the clients call.
#[derive(Clone, Copy, Debug)]
struct Clients {
    high_hz: u64,
    real_time: bool,
}

impl LineUp {
    /// Starts the presets of the cells, and measures how many calls saturate the CPU.
    pub(in crate::experiments) fn start(
        context: &Context,
        cells: &[Cell<'_>],
        high_hz: usize,
    ) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let clients = Clients {
            high_hz: high_hz as u64,
            real_time: launcher.is_real_time(),
        };
        let raw = Contestant::raw(launcher, Transport::Tcp, context.folder())?;
        let objects = [(LOW, true), (HIGH, false)].map(|(priority, works)| RateObject {
            priority: clients.priority(priority),
            works,
        });
        let mut call_costs_ns = BTreeMap::new();
        let prepare = |labels: &Labels, contestant: &mut RateContestant| {
            let scheduling = contestant.roll_call(&[clients.high(), clients.low(1)])?;
            let of_it = cells.iter().filter(|cell| cell.is_of(labels));
            for cell in of_it.filter(|cell| saturates(cell)) {
                let cost_ns = clients.calibrate(contestant, cell)?;
                call_costs_ns.insert(cell.levels(&COST), cost_ns);
            }
            Ok(scheduling)
        };
        let placement = |cell: &Cell<'_>| server_placement(context, cell);
        let others =
            line_up::LineUp::start(launcher, cells, &ENTRANT, placement, &objects, prepare)?;
        Ok(Self {
            raw,
            others,
            clients,
            lacks_place: cells.iter().any(|cell| placement(cell).is_none()),
            call_costs_ns,
        })
    }

    fn measure_raw(&mut self) -> Result<Sampled, LabError> {
        let samples = self.raw.burst(&RAW_BURST)?;
        Ok(Sampled {
            parts: vec![(part(Orb::Raw, CALL), samples.times_ns)],
            ..Sampled::default()
        })
    }
}

impl Clients {
    fn priority(self, priority: u8) -> u8 {
        if self.real_time { priority } else { 0 }
    }

    fn high(self) -> Group {
        Group {
            object: 1,
            priority: self.priority(HIGH),
            clients: 1,
            period_ns: NS_PER_S / self.high_hz,
            calls: 1,
            releases: Releases::Each,
        }
    }

    /// So many low-priority clients, at the rate of the papers.
    fn low(self, clients: usize) -> Group {
        Group {
            object: 0,
            priority: self.priority(LOW),
            clients,
            period_ns: NS_PER_S / LOW_HZ,
            releases: Releases::Latest,
            ..self.high()
        }
    }

    fn calibrate(self, contestant: &mut RateContestant, cell: &Cell<'_>) -> Result<f64, LabError> {
        let work_us = cell.number(WORK) as u64;
        contestant.set_work(work_us)?;
        contestant.calibrate(&self.low(cell.number(LOW_CLIENTS)), work_us)
    }

    /// A run of the high-priority client, and the low-priority ones of this cell. `call_cost_ns` is what a call of theirs takes.
    fn run(self, cell: &Cell<'_>, turn: &Turn<'_>, call_cost_ns: Option<f64>) -> Run {
        let first = if cell.is(RELEASE, TOGETHER) {
            FirstReleases::Together
        } else {
            FirstReleases::Spread
        };
        let low_clients = cell.number(LOW_CLIENTS);
        let low = (low_clients > 0).then(|| match call_cost_ns {
            Some(cost_ns) => saturating(&self.low(low_clients), cost_ns, SATURATING_SHARE),
            None => self.low(low_clients),
        });
        Run {
            duration_ns: turn.run_ms as u64 * 1_000_000,
            round: turn.round,
            first,
            groups: std::iter::once(self.high()).chain(low).collect(),
        }
    }
}

impl Subject for LineUp {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        Ok(self.others.scheduling())
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        if !cell.has(PRESET) {
            return self.measure_raw();
        }
        let Some(contestant) = self.others.of(cell) else {
            return Ok(Sampled::default());
        };
        let costs_ns = saturates(cell).then_some(&self.call_costs_ns);
        let cost_ns = costs_ns.and_then(|costs| costs.get(&cell.levels(&COST)));
        let run = self.clients.run(cell, turn, cost_ns.copied());
        contestant.set_work(cell.number(WORK) as u64)?;
        let ran = contestant.run(&run)?;
        Ok(sampled(contestant.orb, ran))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.others.left_out();
        notes.extend(self.lacks_place.then(|| LACKS_PLACE.to_owned()));
        notes
    }
}

/// The times of each role, from sending and from the release, and the shares of the CPU.
fn sampled(orb: Orb, ran: Ran) -> Sampled {
    let mut sampled = Sampled::default();
    for (role, times) in ["high", "low"].into_iter().zip(ran.ran.groups) {
        let of = |kind| {
            let mut labels = part(orb, kind);
            labels.insert("role".to_owned(), role.into());
            labels
        };
        sampled.parts.push((of(CALL), times.sent_ns));
        sampled.parts.push((of("from_release"), times.release_ns));
        sampled.wrong += times.wrong;
        *sampled.numbers.entry(MISSED.to_owned()).or_default() += times.missed as f64;
    }
    let shares = ran.cpu.by_side();
    sampled.answer = Some(Answer {
        numbers: shares
            .map(|(side, share)| (side.unwrap_or(BOTH_SIDES).to_owned(), share))
            .collect(),
        ..Answer::default()
    });
    sampled
}

fn part(orb: Orb, kind: &str) -> Labels {
    labels([("orb", orb.label().into()), ("part", kind.into())])
}

fn saturates(cell: &Cell<'_>) -> bool {
    cell.is(LOAD, SATURATING) && cell.number(LOW_CLIENTS) > 0
}

/// The CPU and the scheduling of the server of a cell; `None` if there is no such host or CPU.
fn server_placement(context: &Context, cell: &Cell<'_>) -> Option<Placement> {
    let ours = context.launcher.placement;
    if context.launcher.agent.is_some() {
        // The agent places its servers, with a priority between those of the clients.
        let is_there = !cell.has(PLACEMENT) || cell.is(PLACEMENT, TWO_HOSTS);
        let is_possible = !cell.has(URGENCY) || cell.is(URGENCY, BETWEEN);
        return (is_there && is_possible).then_some(ours);
    }
    if cell.is(PLACEMENT, TWO_HOSTS) {
        return None;
    }
    let cpu = if cell.is(PLACEMENT, SERVER_CPU) {
        Some(context.other_cpu()?)
    } else {
        ours.cpu
    };
    let fifo = if cell.is(URGENCY, ABOVE) {
        HIGH + 10
    } else if cell.is(URGENCY, BELOW) {
        LOW - 5
    } else {
        return Some(Placement { cpu, ..ours });
    };
    let fifo = ours.fifo.map(|_| fifo);
    Some(Placement { cpu, fifo })
}

/// The factors that an entrant depends on.
const ENTRANT: [&str; 3] = [PRESET, PLACEMENT, URGENCY];
/// The factors that the processor time of a call depends on.
const COST: [&str; 5] = [PRESET, PLACEMENT, URGENCY, WORK, LOW_CLIENTS];
/// The value of the label `part`: from sending on.
pub(super) const CALL: &str = "call";
/// The number that has the releases which were left out.
pub(super) const MISSED: &str = "missed_releases";
/// The number that has the share of the CPU of both sides; other such numbers are called as the side.
pub(super) const BOTH_SIDES: &str = "both";
const LACKS_PLACE: &str = "Left out: servers on a CPU of their own where there is one CPU; servers on a host of their own \
     without an agent, and others with one.";
const NS_PER_S: u64 = 1_000_000_000;
/// As many octets as a call of ours has, there and back.
const RAW_BURST: Burst = Burst {
    verb: Verb::Call,
    operation: Operation::Octet,
    len: 0,
    warm_up: 100,
    count: 1_000,
    budget_ns: 100_000_000,
    request_bytes: 73,
    reply_bytes: 25,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::rates::Times;
    use crate::contestants::rates::contestants::CpuShares;
    use crate::experiment::Effort;
    use crate::processes::interrupt::Interrupt;

    fn run(load: &str, low_clients: usize, call_cost_ns: Option<f64>) -> Run {
        let clients = Clients {
            high_hz: 20,
            real_time: true,
        };
        let context = Context::new(Effort::Quick, "/bin/false".into(), Interrupt::new());
        let turn = Turn {
            context: &context.expect("a folder"),
            round: 3,
            samples: 0,
            run_ms: 400,
        };
        let levels = labels([
            (LOAD, load.into()),
            (WORK, 500usize.into()),
            (LOW_CLIENTS, low_clients.into()),
        ]);
        clients.run(&Cell::of(&levels), &turn, call_cost_ns)
    }

    #[test]
    fn the_rates_are_those_of_the_papers_or_fill_the_cpu() {
        let papers = run("10hz", 50, None);
        assert_eq!((papers.round, papers.groups.len()), (3, 2));
        assert_eq!(papers.duration_ns, 400_000_000);
        assert_eq!(papers.groups[0].period_ns, 50_000_000);
        assert_eq!(papers.groups[1].period_ns, 100_000_000);
        assert!(papers.groups[0].priority > papers.groups[1].priority);
        let low = &run(SATURATING, 50, Some(510_000.0)).groups[1];
        let share = 510_000.0 * 50.0 / low.period_ns as f64;
        assert!((share - SATURATING_SHARE).abs() < 1e-3);
        assert_eq!(run(SATURATING, 0, None).groups.len(), 1);
    }

    #[test]
    fn a_run_has_the_times_of_each_role_and_what_the_cpu_did() {
        let times = |ns| Times {
            sent_ns: vec![ns],
            release_ns: vec![ns + 1],
            wrong: 1,
            missed: 2,
        };
        let mut ran = Ran {
            ran: Default::default(),
            cpu: CpuShares::Together(0.5),
        };
        ran.ran.groups = vec![times(10), times(20)];
        let sampled = sampled(Orb::Rtorb, ran);
        let parts: Vec<String> = sampled
            .parts
            .iter()
            .map(|(labels, ns)| format!("{} {} {}", labels["role"], labels["part"], ns[0]))
            .collect();
        let expected = [
            "high call 10",
            "high from_release 11",
            "low call 20",
            "low from_release 21",
        ];
        assert_eq!(parts, expected);
        assert_eq!((sampled.wrong, sampled.numbers[MISSED]), (2, 4.0));
        assert_eq!(sampled.answer.expect("shares").numbers[BOTH_SIDES], 0.5);
    }
}

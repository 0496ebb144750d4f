//! Who takes part, and how the clients call.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb_host::placement::Placement;

use super::{
    ABOVE, BELOW, BETWEEN, HIGH, LOAD, LOW, LOW_CLIENTS, LOW_HZ, PLACEMENT, PRESET, RELEASE,
    SATURATING, SATURATING_SHARE, SERVER_CPU, TOGETHER, TWO_HOSTS, URGENCY, WORK, is_papers,
};
use crate::contestants::burst::{Burst, Verb};
use crate::contestants::operations::Operation;
use crate::contestants::rates::contestants::{RateContestant, Turn as Ran, saturate};
use crate::contestants::rates::line_up;
use crate::contestants::rates::priority_of_pair;
use crate::contestants::rates::server::RateObject;
use crate::contestants::rates::{FirstReleases, Group, Releases, Run};
use crate::contestants::{Contestant, Orb, Transport};
use crate::experiments::prelude::*;
use crate::experiments::transports::TRANSPORT;
use crate::processes::awake::Awake;

/// The raw exchange, and everybody who can take part.
#[derive(Debug)]
pub struct LineUp {
    raw: Contestant,
    others: line_up::LineUp,
    clients: Clients,
    /// The places where no server can run here, with the reason.
    absent: Vec<(Labels, String)>,
    /// The releases of low-priority clients that were skipped.
    missed: u64,
    /// Processor time of a low-priority call, by what it depends on.
    call_costs_ns: BTreeMap<Labels, f64>,
}

/// How the clients call.
#[derive(Clone, Copy, Debug)]
struct Clients {
    high_hz: u64,
    real_time: bool,
    servants: Servants,
    /// The number of servants for low-priority clients.
    low_servants: usize,
}

/// The servants of the low-priority clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiments) enum Servants {
    /// One servant, all with one priority: P1 Figure 2.
    One,
    /// Each a servant of its own, each pair with a priority of its own: P0 Figure 3. At the papers' load all clients are
    /// released at once.
    Each,
}

impl LineUp {
    /// Starts the presets of the cells, and measures how many calls saturate the CPU.
    pub(in crate::experiments) fn start(
        context: &Context,
        cells: &[Cell<'_>],
        servants: Servants,
        high_hz: usize,
    ) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let of_others = cells.iter().filter(|cell| cell.has(LOW_CLIENTS));
        let most = of_others.map(|cell| cell.number(LOW_CLIENTS)).max();
        let clients = Clients {
            high_hz: high_hz as u64,
            real_time: launcher.is_real_time(),
            servants,
            low_servants: match servants {
                Servants::One => 1,
                Servants::Each => most.unwrap_or(0).max(1),
            },
        };
        let raw = Contestant::raw(context, Transport::Tcp)?;
        let low = (0..clients.low_servants).map(|servant| (clients.low_priority(servant), true));
        let objects: Vec<RateObject> = low
            .chain([(HIGH, false)])
            .map(|(priority, works)| RateObject {
                priority: clients.priority(priority),
                works,
            })
            .collect();
        let mut call_costs_ns = BTreeMap::new();
        let prepare = |labels: &Labels, contestant: &mut RateContestant| {
            let scheduling = contestant.roll_call(&clients.groups(clients.low_servants))?;
            let of_it = cells.iter().filter(|cell| cell.is_of(labels));
            for cell in of_it.filter(|cell| saturates(cell)) {
                let cost_ns = clients.calibrate(contestant, cell)?;
                call_costs_ns.insert(cell.levels(&COST), cost_ns);
            }
            Ok(scheduling)
        };
        let placement = |cell: &Cell<'_>| server_placement(context, cell);
        let others =
            line_up::LineUp::start(context, cells, &ENTRANT, placement, &objects, prepare)?;
        Ok(Self {
            raw,
            others,
            clients,
            absent: absent(cells, placement),
            missed: 0,
            call_costs_ns,
        })
    }

    /// Measures the raw exchange at the rate of the high-priority client, and with its CPU kept awake: calls at a rate find colder
    /// caches than a burst, and have a wake-up before them.
    fn measure_raw(&mut self, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let burst = self.clients.raw_burst(turn.run_ms);
        let lasting = Duration::from_nanos(burst.budget_ns) + AWAKE_LONGER;
        let awake = Awake::keep(turn.context.launcher.placement.cpu, lasting);
        let samples = self.raw.burst(&burst)?;
        drop(awake);
        Ok(Sampled {
            parts: vec![(part(Orb::Raw, CALL), samples.times_ns)],
            wrong: samples.wrong,
            ..Sampled::default()
        })
    }
}

impl Clients {
    fn priority(self, priority: u8) -> u8 {
        if self.real_time { priority } else { 0 }
    }

    /// Where each has a priority of its own, they come down from the high one.
    fn low_priority(self, servant: usize) -> u8 {
        match self.servants {
            Servants::One => LOW,
            Servants::Each => priority_of_pair(servant + 1),
        }
    }

    fn high(self) -> Group {
        Group {
            object: self.low_servants,
            priority: self.priority(HIGH),
            clients: 1,
            period_ns: NS_PER_S / self.high_hz,
            calls: 1,
            releases: Releases::Each,
        }
    }

    /// As many bytes as a call of ours has, there and back, at the rate of the high-priority client.
    fn raw_burst(self, run_ms: usize) -> Burst {
        let period_ns = self.high().period_ns;
        let duration_ns = run_ms as u64 * 1_000_000;
        Burst {
            verb: Verb::Call,
            operation: Operation::Octet,
            len: 0,
            warm_up: 3,
            count: (duration_ns / period_ns).max(1) as usize,
            budget_ns: duration_ns + RAW_LATE_NS_MAX,
            request_bytes: 73,
            reply_bytes: 25,
            period_ns,
        }
    }

    /// So many low-priority clients, at the rate of the papers.
    fn low(self, clients: usize) -> Vec<Group> {
        let group = |servant, clients| Group {
            object: servant,
            priority: self.priority(self.low_priority(servant)),
            clients,
            period_ns: NS_PER_S / LOW_HZ,
            releases: Releases::Latest,
            ..self.high()
        };
        match self.servants {
            _ if clients == 0 => Vec::new(),
            Servants::One => vec![group(0, clients)],
            Servants::Each => (0..clients).map(|servant| group(servant, 1)).collect(),
        }
    }

    /// The high-priority client and so many low-priority ones.
    fn groups(self, low_clients: usize) -> Vec<Group> {
        let mut groups = vec![self.high()];
        groups.extend(self.low(low_clients));
        groups
    }

    fn calibrate(self, contestant: &mut RateContestant, cell: &Cell<'_>) -> Result<f64, LabError> {
        let work_us = cell.number(WORK) as u64;
        contestant.set_work(work_us)?;
        contestant.calibrate(&self.low(cell.number(LOW_CLIENTS)), work_us)
    }

    /// A run of the high-priority client, and the low-priority ones of this cell. `call_cost_ns` is what a call of theirs takes.
    fn run(self, cell: &Cell<'_>, turn: &Turn<'_>, call_cost_ns: Option<f64>) -> Run {
        let is_barrier = self.servants == Servants::Each && is_papers(cell);
        let first = if is_barrier || cell.is(RELEASE, TOGETHER) {
            FirstReleases::Together
        } else {
            FirstReleases::Spread
        };
        let mut groups = self.groups(cell.number(LOW_CLIENTS));
        if let Some(cost_ns) = call_cost_ns {
            saturate(&mut groups[1..], cost_ns, SATURATING_SHARE);
        }
        Run {
            duration_ns: turn.run_ms as u64 * 1_000_000,
            round: turn.round,
            first,
            groups,
        }
    }
}

impl Subject for LineUp {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        Ok(self.others.scheduling())
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        if !cell.has(PRESET) {
            return self.measure_raw(turn);
        }
        let Some(contestant) = self.others.of(cell) else {
            return Ok(Sampled::default());
        };
        let costs_ns = saturates(cell).then_some(&self.call_costs_ns);
        let cost_ns = costs_ns.and_then(|costs| costs.get(&cell.levels(&COST)));
        let run = self.clients.run(cell, turn, cost_ns.copied());
        contestant.set_work(cell.number(WORK) as u64)?;
        let ran = contestant.run(&run)?;
        let low = ran.ran.groups.iter().skip(1);
        self.missed += low.map(|times| times.missed).sum::<u64>();
        Ok(sampled(contestant.orb, ran))
    }

    fn notes(&self) -> Vec<String> {
        let missed = (self.missed > 0).then(|| {
            format!(
                "{} releases of low-priority clients were skipped, because the call before still ran: each counts as late as the reply \
                 that held it up.",
                self.missed
            )
        });
        self.others.notes().into_iter().chain(missed).collect()
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        [self.others.absent(), self.absent.clone()].concat()
    }
}

/// The places of cells where no server can run here.
fn absent(
    cells: &[Cell<'_>],
    placement: impl Fn(&Cell<'_>) -> Option<Placement>,
) -> Vec<(Labels, String)> {
    let mut absent: Vec<(Labels, String)> = Vec::new();
    for cell in cells.iter().filter(|cell| placement(cell).is_none()) {
        let place = cell.levels(&[PLACEMENT, URGENCY, TRANSPORT]);
        if !absent.iter().any(|(known, _)| *known == place) {
            absent.push((place, LACKS_PLACE.to_owned()));
        }
    }
    absent
}

/// The times of each role, from sending and from the release, and the shares of the CPU.
fn sampled(orb: Orb, ran: Ran) -> Sampled {
    let mut sampled = Sampled::default();
    let mut groups = ran.ran.groups.into_iter();
    let high = groups.next();
    let low = groups.reduce(|mut all, one| {
        all.append(one);
        all
    });
    for (role, times) in [("high", high), ("low", low)] {
        let Some(times) = times else { continue };
        let of = |kind| {
            let mut labels = part(orb, kind);
            labels.insert("role".to_owned(), role.into());
            labels
        };
        sampled.parts.push((of(CALL), times.release_ns));
        sampled.parts.push((of(SENDING), times.sent_ns));
        sampled.wrong += times.wrong;
    }
    sampled.counts = ran
        .cpu
        .by_side()
        .map(|(side, share)| {
            let mut labels = labels([("part", "cpu_share".into())]);
            labels.extend(side.map(|side| ("side".to_owned(), side.into())));
            (labels, share, ("ratio", 1))
        })
        .collect();
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
    if context.launcher.agent().is_some() {
        // The agent places its servers, with a priority between those of the clients.
        let is_there = (!cell.has(PLACEMENT) || cell.is(PLACEMENT, TWO_HOSTS))
            && Transport::of(cell) == Transport::Tcp;
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
    let fifo = ours.fifo.map(|between| process_priority(cell, between));
    Some(Placement { cpu, fifo })
}

/// The priority of a server's process, and of threads that serve all requests with one priority: never more or less urgent than all of
/// the clients that they serve, as no lane of a server that has lanes is.
fn process_priority(cell: &Cell<'_>, between: u8) -> u8 {
    if cell.is(URGENCY, ABOVE) {
        HIGH
    } else if cell.is(URGENCY, BELOW) {
        LOW
    } else {
        between
    }
}

/// The factors that an entrant depends on.
const ENTRANT: [&str; 4] = [PRESET, PLACEMENT, URGENCY, TRANSPORT];
/// The factors that the processor time of a call depends on.
const COST: [&str; 6] = [PRESET, PLACEMENT, URGENCY, TRANSPORT, WORK, LOW_CLIENTS];
/// The value of the label `part`: from the planned release to the reply.
pub(super) const CALL: &str = "call";
/// The same, from sending on.
const SENDING: &str = "from_sending";
const LACKS_PLACE: &str = "Left out: servers on a CPU of their own where there is one CPU; servers on a host of their own \
     without an agent; with one, others, UNIX sockets and shared memory.";
const NS_PER_S: u64 = 1_000_000_000;
/// How much longer the raw exchange may take than its calls are released for.
const RAW_LATE_NS_MAX: u64 = 1_000_000_000;
/// Until the client has answered.
const AWAKE_LONGER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::rates::Times;
    use crate::contestants::rates::contestants::CpuShares;
    use crate::experiment::Effort;
    use crate::processes::interrupt::Interrupt;

    fn run(load: &str, low_clients: usize, call_cost_ns: Option<f64>) -> Run {
        run_of(Servants::One, load, low_clients, call_cost_ns)
    }

    fn run_of(
        servants: Servants,
        load: &str,
        low_clients: usize,
        call_cost_ns: Option<f64>,
    ) -> Run {
        let clients = Clients {
            high_hz: 20,
            real_time: true,
            servants,
            low_servants: 50,
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
            (WORK, (if load == SATURATING { 500usize } else { 0 }).into()),
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
    fn the_raw_exchange_is_paced_as_the_high_priority_client_is() {
        let clients = Clients {
            high_hz: 250,
            real_time: true,
            servants: Servants::One,
            low_servants: 1,
        };
        let burst = clients.raw_burst(400);
        assert_eq!((burst.period_ns, burst.count), (4_000_000, 100));
        assert_eq!(burst.period_ns, clients.high().period_ns);
        assert!(burst.budget_ns > burst.period_ns * burst.count as u64);
    }

    #[test]
    fn each_pair_has_a_priority_of_its_own_and_all_are_released_at_once() {
        let run = run_of(Servants::Each, "10hz", 50, None);
        assert_eq!(run.first, FirstReleases::Together);
        let pairs: Vec<(usize, u8)> = run
            .groups
            .iter()
            .map(|group| (group.object, group.priority))
            .collect();
        assert_eq!(
            (pairs[0], pairs[1], pairs[50]),
            ((50, 60), (0, 59), (49, 10))
        );
        let hardest = run_of(Servants::Each, SATURATING, 50, Some(510_000.0));
        assert_eq!(hardest.first, FirstReleases::Spread);
        let share: f64 = hardest.groups[1..]
            .iter()
            .map(|group| 510_000.0 / group.period_ns as f64)
            .sum();
        assert!((share - SATURATING_SHARE).abs() < 1e-3);
    }

    /// A lane has the priority of the client that it serves. A pool of one priority has that of one of its clients, or one between.
    #[test]
    fn no_server_runs_below_all_clients_that_it_serves() {
        for urgency in [ABOVE, BETWEEN, BELOW] {
            let levels = labels([(URGENCY, urgency.into())]);
            let of_pool = process_priority(&Cell::of(&levels), 50);
            assert!((LOW..=HIGH).contains(&of_pool), "{urgency}: {of_pool}");
        }
    }

    /// A call is made late and answered fast: what is judged has the time before it was made.
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
        ran.ran.groups = vec![times(10), times(20), times(30)];
        let sampled = sampled(Orb::Rtorb, ran);
        let parts: Vec<String> = sampled
            .parts
            .iter()
            .map(|(labels, ns)| format!("{} {} {ns:?}", labels["role"], labels["part"]))
            .collect();
        let expected = [
            "high call [11]",
            "high from_sending [10]",
            "low call [21, 31]",
            "low from_sending [20, 30]",
        ];
        assert_eq!(parts, expected);
        assert_eq!(sampled.wrong, 3);
        let [(labels, share, _)] = &sampled.counts[..] else {
            panic!("both sides together: {:?}", sampled.counts)
        };
        assert_eq!((&labels["part"], *share), (&"cpu_share".into(), 0.5));
    }
}

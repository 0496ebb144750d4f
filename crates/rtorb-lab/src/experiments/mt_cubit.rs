//! MT_Cubit, which `orb/latency-jitter` and `orb/architectures` share: one high-priority client that calls at a rate, and
//! more and more low-priority ones whose requests hold their servant.
//!
//! All on one CPU. Contestants take turns within each round; in each round there are runs without low-priority clients, and
//! what is said of the others is said beside those.

use std::collections::BTreeMap;

use rtorb_results::{LostRound, ObtainedScheduling, all_real_time};

use crate::contestants::burst::{Burst, Verb};
use crate::contestants::operations::Operation;
use crate::contestants::peers::omniorb;
use crate::contestants::rates::Group;
use crate::contestants::rates::contestants::RateContestant;
use crate::contestants::rates::server::RateObject;
use crate::contestants::{Contestant, OMNIORB, Transport};
use crate::error::LabError;
use crate::experiment::{Context, Outcome, Progress, is_complete};
use measured::Measured;
pub(super) use plan::{CONDITIONS, EMULATED, EMULATED_HZ, EXTREMES, HARDEST, Plan, ROUNDS};
use plan::{Cell, HIGH, LOW, Load, high, low};

mod conclusions;
mod measured;
mod plan;
mod published;
mod words;

/// Which papers' figures stand beside ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paper {
    /// P0 Figures 4 to 6: one ORB on many operating systems.
    P0,
    /// P1 Figures 7 and 8: four ORBs on one.
    P1,
}

/// Measures what the plan says. An interrupt is not an error: the outcome says that it is not complete.
pub(super) fn run(
    context: &Context,
    plan: &Plan,
    paper: Paper,
    progress: &mut dyn Progress,
) -> Result<Outcome, LabError> {
    let mut measured = Measured::default();
    let mut line_up = LineUp::default();
    let done = line_up
        .start(context, plan, &mut measured, progress)
        .and_then(|()| line_up.measure(context, plan, &mut measured, progress));
    let complete = is_complete(done)?;
    let scheduling = line_up.scheduling;
    let real_time = all_real_time(&scheduling);
    let mut notes = std::mem::take(&mut measured.notes);
    notes.extend(words::notes(&measured, real_time));
    notes.extend(plan.leaves_out.map(str::to_owned));
    Ok(Outcome {
        complete,
        scheduling,
        highlights: conclusions::highlights(&measured, plan),
        derived: conclusions::derived(&measured),
        claims: conclusions::claims(&measured),
        conclusions: words::conclusions(&measured, plan),
        published: match paper {
            Paper::P0 => published::p0(&measured),
            Paper::P1 => published::p1(&measured),
        },
        series: measured.series(real_time),
        lost: measured.lost,
        notes,
        ..Outcome::default()
    })
}

/// Those who take part, with what a low-priority call costs each.
#[derive(Debug, Default)]
struct LineUp {
    raw: Option<Contestant>,
    contestants: Vec<RateContestant>,
    scheduling: Vec<ObtainedScheduling>,
    /// By contestant, of each saturating cell.
    call_costs_ns: Vec<BTreeMap<Cell, f64>>,
    real_time: bool,
}

impl LineUp {
    /// Starts everybody who can take part; says who cannot and why.
    fn start(
        &mut self,
        context: &Context,
        plan: &Plan,
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let launcher = &context.launcher;
        self.real_time = launcher.is_real_time();
        self.raw = Some(Contestant::raw(launcher, Transport::Tcp, context.folder())?);
        let objects = self.objects();
        for name in plan
            .presets
            .iter()
            .chain(plan.with_peer.then_some(&OMNIORB))
        {
            let left_out = match RateContestant::named(launcher, name, &objects) {
                Ok(None) => format!("{name} was left out: {}.", omniorb::HOW_TO_INSTALL),
                Ok(Some(contestant)) => match self.calibrated(contestant, plan) {
                    Ok(()) => continue,
                    Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                    Err(error) => format!("{name} was left out: {error}"),
                },
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => format!("{name} was left out: {error}"),
            };
            progress.note(&left_out);
            measured.note(left_out);
        }
        Ok(())
    }

    /// The low-priority clients' object, which works, and the high-priority one's.
    fn objects(&self) -> [RateObject; 2] {
        [(LOW, true), (HIGH, false)].map(|(priority, works)| RateObject {
            priority: if self.real_time { priority } else { 0 },
            works,
        })
    }

    /// Finds out how a contestant's threads are scheduled and what its low-priority calls cost, and takes it in.
    fn calibrated(&mut self, mut contestant: RateContestant, plan: &Plan) -> Result<(), LabError> {
        let groups = [high(self.real_time), low(self.real_time)];
        let scheduling = contestant.roll_call(&groups)?;
        let mut costs_ns = BTreeMap::new();
        for cell in plan.cells() {
            if cell.condition.load == Load::Saturating && cell.low_clients > 0 {
                let group = Group {
                    clients: cell.low_clients,
                    ..groups[1].clone()
                };
                let work_us = cell.condition.servant_work_us;
                contestant.set_work(work_us)?;
                costs_ns.insert(cell, contestant.calibrate(&group, work_us)?);
            }
        }
        self.scheduling.extend(scheduling);
        self.contestants.push(contestant);
        self.call_costs_ns.push(costs_ns);
        Ok(())
    }

    fn measure(
        &mut self,
        context: &Context,
        plan: &Plan,
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let cells = plan.cells();
        progress.begin(plan.rounds * cells.len());
        for round in 0..plan.rounds {
            context.begin_round(round);
            if let Some(raw) = &mut self.raw {
                measured.add_raw(&raw.burst(&RAW_BURST)?);
            }
            for &cell in &cells {
                for turn in 0..self.contestants.len() {
                    if context.interrupted() {
                        return Err(LabError::Interrupted);
                    }
                    // Let each be first in turn.
                    let place = (turn + round) % self.contestants.len();
                    let contestant = &mut self.contestants[place];
                    let work_us = cell.condition.servant_work_us;
                    let cost_ns = self.call_costs_ns[place].get(&cell).copied();
                    // Without one, nothing saturates.
                    let run = plan.run(cell, round, cost_ns.unwrap_or(0.0), self.real_time);
                    let done = contestant
                        .set_work(work_us)
                        .and_then(|()| contestant.run(&run));
                    match done {
                        Ok(turn) => measured.add(place, contestant, cell, (round, &turn)),
                        Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                        Err(error) => {
                            measured.lost.push(LostRound {
                                round,
                                what: format!("{contestant}: {cell}"),
                                why: error.to_string(),
                            });
                        }
                    }
                }
                progress.step(&format!("round {} of {}: {cell}", round + 1, plan.rounds));
            }
        }
        Ok(())
    }
}

/// The octets of a request and a reply of `cube_octet`.
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

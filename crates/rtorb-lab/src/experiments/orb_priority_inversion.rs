//! `orb/priority-inversion`: four clients, the more often one calls the higher its priority: is their latency a staircase?
//!
//! All on one CPU. Contestants take turns within each round.

use std::time::Duration;

use rtorb_results::{LostRound, ObtainedScheduling, all_real_time, labels};

use crate::contestants::OMNIORB;
use crate::contestants::peers::omniorb;
use crate::contestants::rates::contestants::RateContestant;
use crate::contestants::rates::server::RateObject;
use crate::contestants::rates::{Group, Releases, Run};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use staircase::{Measured, Stair};

mod conclusions;
mod staircase;

/// The experiment.
#[derive(Debug)]
pub struct OrbPriorityInversion;

impl Experiment for OrbPriorityInversion {
    fn name(&self) -> &'static str {
        "orb/priority-inversion"
    }

    fn title(&self) -> &'static str {
        "Whether a client that calls more often, with a higher priority, is never slower than one that calls less often"
    }

    fn reproduces(&self) -> &'static str {
        "P2 Figures 3 and 4"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let text = |numbers: &[u64]| {
            let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            words.join(" ")
        };
        let priorities = PRIORITIES.map(u64::from);
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let round: Duration = WORK_US.iter().map(|work_us| plan.run_of(*work_us)).sum();
        let paced = round * (plan.rounds * (PRESETS.len() + peers(effort).len())) as u32;
        labels([
            ("effort", effort.name().into()),
            ("rounds", plan.rounds.into()),
            ("presets", PRESETS.join(" ").into()),
            ("rates_hz", text(&plan.rates_hz()).into()),
            ("priorities", text(&priorities).into()),
            ("servant_work_us", text(&WORK_US).into()),
            ("run_ms", ms(plan.run).into()),
            ("run_with_work_ms", ms(plan.run_with_work).into()),
            ("paced_seconds", paced.as_secs().into()),
        ])
    }

    fn uses_agent(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let mut measured = Measured::default();
        let mut line_up = LineUp::default();
        let done = line_up
            .start(context, &plan, &mut measured, progress)
            .and_then(|()| line_up.measure(context, &plan, &mut measured, progress));
        let complete = is_complete(done)?;
        let scheduling = line_up.scheduling;
        let real_time = all_real_time(&scheduling);
        let mut notes = std::mem::take(&mut measured.notes);
        if context.effort.seeds().is_none() {
            notes.push(COLD.to_owned());
        }
        if context.effort == Effort::Quick {
            notes.push(QUICK.to_owned());
        }
        Ok(Outcome {
            complete,
            scheduling,
            highlights: conclusions::highlights(&measured),
            derived: conclusions::derived(&measured),
            claims: conclusions::claims(&measured),
            conclusions: conclusions::words(&measured),
            published: conclusions::published(&measured),
            series: measured.series(real_time),
            lost: measured.lost,
            notes,
            ..Outcome::default()
        })
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// The paper's rates are multiplied by this.
    faster: u64,
    /// How long each run takes in which a request is as short as the paper's.
    run: Duration,
    /// How long each run takes in which a request holds its servant.
    run_with_work: Duration,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Emulated { seeds } => Self {
                rounds: usize::from(seeds),
                faster: 20,
                run: Duration::from_millis(200),
                run_with_work: Duration::from_millis(200),
            },
            Effort::Glance => Self {
                rounds: ROUNDS,
                faster: 10,
                run: Duration::from_millis(110),
                run_with_work: Duration::from_millis(110),
            },
            Effort::Quick => Self {
                rounds: ROUNDS,
                faster: 10,
                run: Duration::from_millis(400),
                run_with_work: Duration::from_millis(400),
            },
            // Over the rounds, the paper's 1,000 calls of the client that calls once a second.
            Effort::Full => Self {
                rounds: ROUNDS,
                faster: 1,
                run: Duration::from_secs(200),
                run_with_work: Duration::from_secs(20),
            },
        }
    }

    fn rates_hz(&self) -> [u64; CLIENTS] {
        RATES_HZ.map(|hz| hz * self.faster)
    }

    fn run_of(&self, work_us: u64) -> Duration {
        match work_us {
            0 => self.run,
            _ => self.run_with_work,
        }
    }

    fn run(&self, work_us: u64, round: usize, real_time: bool) -> Run {
        let client = |(object, (hz, priority)): (usize, (u64, u8))| Group {
            object,
            priority: if real_time { priority } else { 0 },
            clients: 1,
            period_ns: 1_000_000_000 / hz,
            calls: 1,
            releases: Releases::Each,
        };
        let clients = self.rates_hz().into_iter().zip(PRIORITIES);
        Run {
            duration_ns: u64::try_from(self.run_of(work_us).as_nanos()).unwrap_or(u64::MAX),
            round,
            groups: clients.enumerate().map(client).collect(),
        }
    }
}

/// Those who take part.
#[derive(Debug, Default)]
struct LineUp {
    contestants: Vec<RateContestant>,
    scheduling: Vec<ObtainedScheduling>,
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
        let objects = PRIORITIES.map(|priority| RateObject {
            priority: if self.real_time { priority } else { 0 },
            works: true,
        });
        let groups = plan.run(0, 0, self.real_time).groups;
        let start = |name: &str| -> Result<Option<_>, LabError> {
            let Some(mut contestant) = RateContestant::named(launcher, name, &objects)? else {
                return Ok(None);
            };
            let scheduling = contestant.roll_call(&groups)?;
            Ok(Some((contestant, scheduling)))
        };
        for name in PRESETS.iter().chain(peers(context.effort)) {
            let left_out = match start(name) {
                Ok(Some((contestant, scheduling))) => {
                    self.scheduling.extend(scheduling);
                    self.contestants.push(contestant);
                    continue;
                }
                Ok(None) => format!("{name} was left out: {}.", omniorb::HOW_TO_INSTALL),
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => format!("{name} was left out: {error}"),
            };
            progress.note(&left_out);
            measured.note(left_out);
        }
        Ok(())
    }

    fn measure(
        &mut self,
        context: &Context,
        plan: &Plan,
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        progress.begin(plan.rounds * WORK_US.len());
        for round in 0..plan.rounds {
            context.begin_round(round);
            for work_us in WORK_US {
                let run = plan.run(work_us, round, self.real_time);
                for turn in 0..self.contestants.len() {
                    if context.interrupted() {
                        return Err(LabError::Interrupted);
                    }
                    let place = (turn + round) % self.contestants.len();
                    let contestant = &mut self.contestants[place];
                    let done = contestant
                        .set_work(work_us)
                        .and_then(|()| contestant.run(&run));
                    match done {
                        Ok(turn) => {
                            for (times, stair) in turn.ran.groups.iter().zip(stairs(plan)) {
                                let whose = (place, contestant.preset.as_str(), work_us);
                                measured.add(round, whose, stair, times);
                            }
                        }
                        Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                        Err(error) => measured.lost.push(LostRound {
                            round,
                            what: format!("{contestant}: {work_us} us of work"),
                            why: error.to_string(),
                        }),
                    }
                }
                progress.step(&format!(
                    "round {} of {}: {work_us} us of work",
                    round + 1,
                    plan.rounds
                ));
            }
        }
        Ok(())
    }
}

/// There is none in an emulated machine.
fn peers(effort: Effort) -> &'static [&'static str] {
    match effort {
        Effort::Emulated { .. } => &[],
        Effort::Glance | Effort::Quick | Effort::Full => &[OMNIORB],
    }
}

fn stairs(plan: &Plan) -> impl Iterator<Item = Stair> {
    let stairs = plan.rates_hz().into_iter().zip(PRIORITIES);
    stairs.map(|(rate_hz, priority)| Stair { priority, rate_hz })
}

const CLIENTS: usize = 4;
/// As in P2.
const RATES_HZ: [u64; CLIENTS] = [20, 10, 5, 1];
/// SCHED_FIFO by rate: what the processes themselves have, 50, lies between the first and the others.
const PRIORITIES: [u8; CLIENTS] = [60, 45, 30, 15];
/// Processor time of a request, of whichever client.
const WORK_US: [u64; 2] = [0, 500];
const ROUNDS: usize = 5;
const PRESETS: [&str; 2] = ["tao", "default"];
const COLD: &str = "Without work, the rates alone make differences: a client that seldom calls finds colder caches than one that \
                    often does. This is in favour of the staircase; with work it is little beside the work.";
const QUICK: &str =
    "A quick look: all rates are ten times the paper's. `--full` has its rates and sample counts.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_calls_more_often_is_more_urgent() {
        for effort in [Effort::Quick, Effort::Full, Effort::Emulated { seeds: 4 }] {
            let run = Plan::of(effort).run(500, 1, true);
            assert_eq!(run.groups.len(), CLIENTS);
            for pair in run.groups.windows(2) {
                assert!(pair[0].period_ns < pair[1].period_ns);
                assert!(pair[0].priority > pair[1].priority);
            }
        }
        assert_eq!(Plan::of(Effort::Full).rates_hz(), RATES_HZ);
    }

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_and_little_time() {
        let parameters = OrbPriorityInversion.parameters(Effort::Emulated { seeds: 4 });
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 4);
    }
}

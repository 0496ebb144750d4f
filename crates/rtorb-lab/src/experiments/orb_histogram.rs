//! `orb/histogram`: how long a call takes from a digital input to a digital output, to one receiver and to two of different
//! priority, without and with load.
//!
//! With two receivers, the edges of the less urgent wave come a little before those of the urgent one, by a lead that is
//! spread evenly: so the urgent edge meets every moment of the other call, and would have to wait if anything on the way
//! forgot the priority.

use rtorb_results::{LostRound, ObtainedScheduling, Plot, PlotKind, labels};

use crate::contestants::Transport;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Path, Run};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::experiments::beside::Beside;
use crate::processes::load::Load;
use measured::{Cell, MEETING, Measured};

mod conclusions;
mod measured;

/// The experiment.
#[derive(Debug)]
pub struct OrbHistogram;

impl Experiment for OrbHistogram {
    fn name(&self) -> &'static str {
        "orb/histogram"
    }

    fn title(&self) -> &'static str {
        "How long a call takes from a digital input to a digital output, with one and two receivers, without and with load"
    }

    fn reproduces(&self) -> &'static str {
        "P4 Figures 6 to 9"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let runs = plan.rounds * plan.loads.len() * TRANSPORTS.len() * Role::ALL.len();
        let paced_ns = (runs * plan.edges) as u64 * PERIOD_NS;
        let transports = TRANSPORTS.map(Transport::label).join(" ");
        labels([
            ("effort", effort.name().into()),
            ("rounds", plan.rounds.into()),
            ("edges_per_round", plan.edges.into()),
            ("edges_hz", (1_000_000_000 / PERIOD_NS).into()),
            ("low_leads_us_max", (LEAD_NS_MAX / 1_000).into()),
            ("payload_bytes", 0usize.into()),
            ("preset", PRESET.into()),
            ("transports", transports.into()),
            ("priority_high", u32::from(Role::High.priority()).into()),
            ("priority_low", u32::from(Role::Low.priority()).into()),
            ("paced_seconds", (paced_ns / 1_000_000_000).into()),
            ("awake", effort.seeds().is_none().into()),
        ])
    }

    fn varies_load(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let is_emulated = context.effort.seeds().is_some();
        let load = Beside::load(context);
        let mut measured = Measured::of(load.to_string());
        let mut line_up = LineUp::default();
        let done = line_up
            .start(context, &mut measured, progress)
            .and_then(|()| line_up.measure((context, plan, &load), &mut measured, progress));
        let complete = is_complete(done)?;
        let mut notes = system::notes(context);
        if !is_emulated {
            notes.push(COLD.to_owned());
        }
        notes.push(MEETINGS.to_owned());
        let real_time = context.launcher.placement.fifo.is_some();
        if !real_time {
            notes.push(NOT_REAL_TIME.to_owned());
        }
        notes.append(&mut measured.notes);
        let pulse = system::pulse_of(context, Role::High);
        Ok(Outcome {
            complete,
            scheduling: line_up.scheduling,
            highlights: conclusions::highlights(&measured),
            series: measured.series(pulse.name(), real_time),
            columns: vec!["load".to_owned()],
            tables: Vec::new(),
            plots: plots(),
            derived: conclusions::derived(&measured),
            claims: conclusions::claims(&measured),
            lost: std::mem::take(&mut measured.lost),
            conclusions: conclusions::words(&measured),
            published: conclusions::published(&measured),
            notes,
        })
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// Of each wave in each round.
    edges: usize,
    /// What is run beside it, one after the other.
    loads: &'static [Beside],
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Glance => Self {
                rounds: 1,
                edges: 30,
                loads: &Beside::WITHOUT_AND_WITH,
            },
            Effort::Emulated { seeds } => Self {
                rounds: usize::from(seeds),
                edges: 125,
                loads: &[Beside::LoadOfMachine],
            },
            Effort::Quick => Self {
                rounds: 6,
                edges: 170,
                loads: &Beside::WITHOUT_AND_WITH,
            },
            Effort::Full => Self {
                rounds: 10,
                edges: 1_000,
                loads: &Beside::WITHOUT_AND_WITH,
            },
        }
    }

    fn run(&self, system: &System, receivers: usize) -> Run {
        let wave = |role: &Role| {
            let lead_ns_max = match role {
                Role::High => 0,
                Role::Low => LEAD_NS_MAX,
            };
            system.wave(*role, PERIOD_NS, lead_ns_max)
        };
        Run {
            duration_ns: self.edges as u64 * PERIOD_NS,
            payload_bytes: 0,
            path: Path::Call,
            waves: system.roles[..receivers].iter().map(wave).collect(),
        }
    }
}

/// Those who take part: a supplier and two receivers for each transport.
#[derive(Debug, Default)]
struct LineUp {
    systems: Vec<System>,
    scheduling: Vec<ObtainedScheduling>,
}

impl LineUp {
    fn start(
        &mut self,
        context: &Context,
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        // Lines for one wave are lines for one receiver.
        let receivers = match context.gpio.len() {
            1 => 1,
            _ => Role::ALL.len(),
        };
        // Two systems cannot have the same lines.
        let transports = match context.gpio.is_empty() {
            true => &TRANSPORTS[..],
            false => &TRANSPORTS[..1],
        };
        for transport in transports {
            let mut system = System::start(context, *transport, &Role::ALL[..receivers])?;
            let few = Plan {
                rounds: 1,
                edges: 10,
                loads: &[],
            };
            let run = few.run(&system, receivers);
            self.scheduling.extend(system.roll_call(&run)?);
            self.systems.push(system);
        }
        if receivers == 1 {
            let note = "There is one receiver, since lines of GPIO were given for one wave.";
            progress.note(note);
            measured.note(note.to_owned());
        }
        Ok(())
    }

    fn measure(
        &mut self,
        (context, plan, load): (&Context, Plan, &Load),
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let cells: usize = self.systems.iter().map(|system| system.roles.len()).sum();
        progress.begin(plan.rounds * cells * plan.loads.len());
        for round in 0..plan.rounds {
            context.begin_round(round);
            for beside in plan.loads {
                let (mut running, made_by) = beside.start((load, round), context)?;
                made_by.into_iter().for_each(|note| measured.note(note));
                let loaded = beside.is_load();
                self.round((context, plan), (round, loaded), measured, progress)?;
                running.check()?;
            }
        }
        Ok(())
    }

    /// Each system with each number of receivers.
    fn round(
        &mut self,
        (context, plan): (&Context, Plan),
        (round, loaded): (usize, bool),
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let count = self.systems.len();
        for turn in 0..count {
            let system = &mut self.systems[(turn + round) % count];
            for receivers in 1..=system.roles.len() {
                if context.interrupted() {
                    return Err(LabError::Interrupted);
                }
                let run = plan.run(system, receivers);
                let transport = system.transport.label();
                match system.run(&run) {
                    Ok(waves) => {
                        for (role, latencies) in system.roles.iter().zip(&waves) {
                            let cell = Cell {
                                transport: system.transport,
                                receivers,
                                loaded,
                                role: *role,
                            };
                            measured.add(round, cell, latencies);
                        }
                        if let [high, low] = &waves[..] {
                            let cell = Cell {
                                transport: system.transport,
                                receivers,
                                loaded,
                                role: Role::High,
                            };
                            measured.meet(round, cell, [high, low]);
                        }
                    }
                    Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                    Err(error) => measured.lost.push(LostRound {
                        round,
                        what: format!("{transport}, {receivers} receivers"),
                        why: error.to_string(),
                    }),
                }
                progress.step(&format!(
                    "round {} of {}: {transport}, {receivers} receivers{}",
                    round + 1,
                    plan.rounds,
                    if loaded { ", under load" } else { "" }
                ));
            }
        }
        Ok(())
    }
}

fn plots() -> Vec<Plot> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let plot = |id: &str, title: &str, kind| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        kind,
        x_title: "from the edge on the input until the output is set, us".to_owned(),
        log_x: true,
        log_y: true,
        ..Plot::default()
    };
    vec![
        Plot {
            caption: "One receiver. P4 shows it for a kernel with PREEMPT_RT under load, and for one without, both without and with load."
                .to_owned(),
            of: labels([("part", "call".into()), ("receivers", 1usize.into())]),
            choose: words(&["transport"]),
            lines: words(&["load"]),
            ..plot("one-receiver", "Without and with load (P4 Figures 6 to 8)", PlotKind::Histogram)
        },
        Plot {
            caption: "Both receivers are called: the edges of the low one come up to 100 us before those of the high one."
                .to_owned(),
            of: labels([("part", "call".into()), ("receivers", 2usize.into())]),
            choose: words(&["transport", "load"]),
            lines: words(&["role"]),
            ..plot("two-receivers", "Two receivers of different priority (P4 Figure 9)", PlotKind::Histogram)
        },
        Plot {
            caption: "The high receiver, by whether a call to the low one was in progress when its edge came: without priority inversion \
                      the lines are one."
                .to_owned(),
            of: labels([("part", MEETING.into())]),
            choose: words(&["transport", "load"]),
            lines: words(&["low_call"]),
            ..plot("high-meets-low", "Whether the high receiver waits for a low call", PlotKind::Percentiles)
        },
        Plot {
            caption: "The high receiver alone, and while the low one is called too. Not for this alone do the lines differ: alone, caches are colder."
                .to_owned(),
            of: labels([("part", "call".into()), ("role", "high".into())]),
            choose: words(&["transport"]),
            lines: words(&["receivers", "load"]),
            ..plot("high-alone-and-with-low", "What the high receiver feels of the low one", PlotKind::Percentiles)
        },
    ]
}

const COLD: &str = "Alone, the high receiver finds colder caches than while the low one's calls run the same code: this may make its \
                    median with the low one smaller, and hide as much of a wait.";
const MEETINGS: &str = "Whether there is priority inversion is judged within the runs with both receivers, by what the low one's call did \
                        when the high one's edge came: `in_progress`, or `none`. Caches are as warm in both. Edges between a low edge \
                        and the moment at which its thread ran are of neither kind, since one timer interrupt may serve both.";
const NOT_REAL_TIME: &str =
    "Without SCHED_FIFO no call has a priority: `role` says what was asked for.";
const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Unix];
pub(super) const PRESET: &str = "tao";
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;
/// Longer than a call takes.
const LEAD_NS_MAX: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_under_its_one_load() {
        let plan = Plan::of(Effort::Emulated { seeds: 4 });
        assert_eq!((plan.rounds, plan.loads), (4, &[Beside::LoadOfMachine][..]));
        let parameters = OrbHistogram.parameters(Effort::Emulated { seeds: 4 });
        assert!(parameters["paced_seconds"].number().unwrap() <= 4);
        assert_eq!(Plan::of(Effort::Quick).loads.len(), 2);
    }
}

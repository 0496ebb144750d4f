//! `orb/throughput`: how long a Cubit call takes by type and size, and how much of that the ORB adds to the octets.
//!
//! The client calls as fast as it can, as in IDL_Cubit. Contestants take turns within each round, since a machine
//! drifts; they are compared by the median over rounds. Raw exchanges of the same octets run beside them in the same
//! run, on the same CPU, with the same priority.

use std::time::Duration;

use rtorb::rt::PriorityModel;
use rtorb_results::{all_real_time, labels};

use crate::contestants::burst::{Burst, Verb};
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::{Architecture, Contestant, Orb, Transport, key_bytes};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use cells::{Cell, cells};
use measured::Measured;

mod cells;
mod conclusions;
mod measured;

/// The experiment.
#[derive(Debug)]
pub struct OrbThroughput;

impl Experiment for OrbThroughput {
    fn name(&self) -> &'static str {
        "orb/throughput"
    }

    fn title(&self) -> &'static str {
        "How long a call takes, by type and size, and what the ORB adds to the octets"
    }

    fn reproduces(&self) -> &'static str {
        "P0 Figure 2 (IDL_Cubit)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("rounds", plan.rounds.into()),
            ("warm_up", plan.warm_up.into()),
            ("count_per_round_max", plan.count.into()),
            ("burst_ms_max", (plan.budget_ns / 1_000_000).into()),
            ("effort", effort.name().into()),
        ])
    }

    fn uses_agent(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let mut notes = Vec::new();
        let mut line_up = match line_up(context, progress, &mut notes) {
            Err(LabError::Interrupted) => {
                return Ok(Outcome {
                    notes,
                    ..Outcome::default()
                });
            }
            line_up => line_up?,
        };
        let scheduling: Vec<_> = line_up.iter().flat_map(Contestant::scheduling).collect();
        let mut measured = Measured::new();
        let done = measure(context, &plan, &mut line_up, &mut measured, progress);
        let complete = is_complete(done)?;
        let series = measured.series(all_real_time(&scheduling));
        Ok(Outcome {
            complete,
            scheduling,
            highlights: conclusions::highlights(&measured),
            derived: conclusions::derived(&measured),
            claims: conclusions::claims(&measured),
            conclusions: Vec::new(),
            published: conclusions::published(&measured),
            lost: measured.lost,
            series,
            notes,
            ..Outcome::default()
        })
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    effort: Effort,
    rounds: usize,
    warm_up: usize,
    count: usize,
    /// Far below the 950 ms after which real-time tasks that never rest are throttled.
    budget_ns: u64,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Emulated { seeds } => Self {
                effort,
                rounds: usize::from(seeds),
                warm_up: 10,
                count: 60,
                budget_ns: 40_000_000,
            },
            Effort::Glance => Self {
                effort,
                rounds: 1,
                warm_up: 10,
                count: 20,
                budget_ns: 20_000_000,
            },
            Effort::Quick => Self {
                effort,
                rounds: 9,
                warm_up: 60,
                count: 1_300,
                budget_ns: 26_000_000,
            },
            Effort::Full => Self {
                effort,
                rounds: 10,
                warm_up: 500,
                count: 10_000,
                budget_ns: 300_000_000,
            },
        }
    }

    fn burst(&self, cell: &Cell, verb: Verb, key_bytes: usize) -> Burst {
        let messages = cell.operation.message_bytes(cell.len, key_bytes);
        Burst {
            verb,
            operation: cell.operation,
            len: cell.len,
            // Beyond a few dozen, more calls of a large message warm nothing that is not warm.
            warm_up: if cell.is_large() {
                self.warm_up / 4
            } else {
                self.warm_up
            },
            count: self.count,
            budget_ns: self.budget_ns,
            request_bytes: messages.request,
            reply_bytes: messages.reply,
        }
    }
}

/// Starts everybody who can take part; says who cannot and why.
fn line_up(
    context: &Context,
    progress: &mut dyn Progress,
    notes: &mut Vec<String>,
) -> Result<Vec<Contestant>, LabError> {
    let launcher = &context.launcher;
    let mut line_up = Vec::new();
    // On another host there is neither memory nor a file system to share.
    let near = launcher.agent.is_none();
    let transports = [Transport::Tcp, Transport::Unix, Transport::Futex];
    for transport in reachable(near, &transports) {
        line_up.push(Contestant::raw(launcher, transport, context.folder())?);
    }
    for transport in reachable(near, &[Transport::Tcp, Transport::Unix]) {
        line_up.push(Contestant::rtorb(launcher, transport, context.folder())?);
    }
    for model in [
        PriorityModel::ServerDeclared,
        PriorityModel::ClientPropagated,
    ] {
        line_up.push(Contestant::rtorb_lane(launcher, model)?);
    }
    let mut leave_out = |text: String| {
        progress.note(&text);
        notes.push(text);
    };
    if !near {
        leave_out(ONLY_TCP.to_owned());
        leave_out(format!(
            "omniORB was left out: {}",
            omniorb::NOT_ON_AN_AGENT
        ));
        return Ok(line_up);
    }
    if context.effort.seeds().is_none() {
        peers(context, &mut line_up, &mut leave_out)?;
    }
    Ok(line_up)
}

fn reachable(near: bool, transports: &[Transport]) -> impl Iterator<Item = Transport> {
    transports
        .iter()
        .copied()
        .filter(move |transport| near || *transport == Transport::Tcp)
}

/// Starts the peer, over each transport that it has here.
fn peers(
    context: &Context,
    line_up: &mut Vec<Contestant>,
    leave_out: &mut dyn FnMut(String),
) -> Result<(), LabError> {
    let launcher = &context.launcher;
    match OmniOrb::find(&launcher.interrupt) {
        Err(LabError::Interrupted) => return Err(LabError::Interrupted),
        Err(error) => leave_out(format!("omniORB was left out: {error}")),
        Ok(None) => leave_out(format!(
            "omniORB was left out: {}.",
            omniorb::HOW_TO_INSTALL
        )),
        Ok(Some(peer)) => {
            for transport in [Transport::Tcp, Transport::Unix] {
                match Contestant::omniorb(launcher, &peer, transport, context.folder()) {
                    Ok(contestant) => line_up.push(contestant),
                    Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                    Err(error) => leave_out(format!(
                        "omniORB over {} was left out: {error}",
                        transport.label()
                    )),
                }
            }
        }
    }
    Ok(())
}

fn measure(
    context: &Context,
    plan: &Plan,
    line_up: &mut [Contestant],
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let cells = cells(plan.effort);
    let key_bytes = our_key_bytes(line_up);
    progress.begin(cells.len() * plan.rounds);
    for cell in &cells {
        for round in 0..plan.rounds {
            context.begin_round(round);
            // Whoever goes first in a round finds the caches as the pause left them: let each be first in turn.
            let first = round % line_up.len().max(1);
            let order: Vec<usize> = (0..line_up.len())
                .map(|index| (index + first) % line_up.len())
                .collect();
            for index in order {
                turn(
                    context,
                    plan,
                    (cell, round),
                    &mut line_up[index],
                    key_bytes,
                    measured,
                )?;
            }
            progress.step(&format!("{cell}, round {} of {}", round + 1, plan.rounds));
        }
    }
    Ok(())
}

/// One contestant's part of a round: the call, and for sequences what the call is made of.
fn turn(
    context: &Context,
    plan: &Plan,
    (cell, round): (&Cell, usize),
    contestant: &mut Contestant,
    key_bytes: usize,
    measured: &mut Measured,
) -> Result<(), LabError> {
    let messages = cell.operation.message_bytes(cell.len, key_bytes);
    // What a lane costs is the same whatever is called: it is measured with the plain call alone.
    let is_for_lanes = contestant.architecture == Architecture::Plain || *cell == Cell::LONG;
    if !is_for_lanes || !contestant.carries(messages) {
        return Ok(());
    }
    let parts_too = contestant.orb != Orb::Raw
        && contestant.transport == Transport::Tcp
        && cell.operation.is_sequence();
    let verbs: &[Verb] = if parts_too {
        &[Verb::Call, Verb::Work, Verb::Marshal]
    } else {
        &[Verb::Call]
    };
    for &verb in verbs {
        let burst = plan.burst(cell, verb, key_bytes);
        if context.interrupted() {
            return Err(LabError::Interrupted);
        }
        match contestant.burst(&burst) {
            Ok(samples) => measured.add(contestant, cell, (verb, round), &samples),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => {
                measured.lose((contestant, cell), round, &error);
                return Ok(());
            }
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The length of our object key, so that the raw messages have the size of ours.
fn our_key_bytes(line_up: &[Contestant]) -> usize {
    let ours = line_up
        .iter()
        .find(|contestant| contestant.orb == Orb::Rtorb);
    ours.and_then(|contestant| contestant.reference.as_deref())
        .and_then(key_bytes)
        .unwrap_or(KEY_BYTES_USUAL)
}

const ONLY_TCP: &str = "UNIX sockets and shared memory were left out: the servers ran on the agent's host, and these do not leave one.";
/// Leaves the CPU to others between bursts, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);
const KEY_BYTES_USUAL: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_and_few_calls() {
        let effort = Effort::Emulated { seeds: 4 };
        let plan = Plan::of(effort);
        assert_eq!(plan.rounds, 4);
        let calls = cells(effort).len() * plan.rounds * (plan.warm_up + plan.count);
        assert!(calls < 5_000, "{calls} calls of each contestant");
    }
}

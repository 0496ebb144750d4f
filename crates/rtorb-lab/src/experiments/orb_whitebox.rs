//! `orb/whitebox`: what a two-way call costs besides time, for each architecture: locks, heap calls, context switches,
//! system calls; and where its processor time goes.
//!
//! Nothing is timed while something is counted, and no other experiment runs with a counter: P1 2.2.2 did its whitebox
//! runs apart from the others too.

use std::time::Duration;

use rtorb::Strategies;
use rtorb_results::labels_with;

use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::whitebox::clients::LOW_CLIENTS;
use crate::contestants::whitebox::contestant::{Contestant, Numbers, REQUESTS};
use crate::contestants::whitebox::{Run, perf, strace};
use crate::contestants::{OMNIORB, Transport};
use crate::experiments::prelude::*;
use crate::experiments::transports::TRANSPORT;
use crate::processes::probe::Answer;

mod computed;

/// The experiment.
pub const STUDY: Study<LineUp> = Study {
    name: "orb/whitebox",
    title: "What a two-way call costs besides time: locks, heap calls, switches, system calls; and where its time goes",
    reproduces: "P1 Figures 9 to 14",
    amounts: Amounts {
        glance: 80,
        emulated: 400,
        quick: [2, 400],
        // 4,000 requests a client, as in P1.
        full: [10, 400],
        samples: "requests_per_client_and_round",
    },
    factors: &[
        Factor::texts(
            PRESET,
            &[
                "default",
                "corbaplus",
                "minicool",
                "mt_orbix",
                "tao",
                OMNIORB,
            ],
        ),
        Factor::numbers(CLIENTS, &[1, TEN as i64]),
        Factor::texts(CALLS, &[BACK_TO_BACK, AT_RATES]),
        // Without a level, it is TCP.
        Factor::texts(TRANSPORT, &["unix", "shm"]).or_absent(),
    ],
    fixed: "part=count",
    parameters: &[
        ("low_clients", Number(LOW_CLIENTS as i64)),
        ("high_clients", Number(1)),
        (
            "requests_of_a_single_client_and_round",
            Value::ByEffort(SINGLE_COUNT),
        ),
        ("high_period_us", Number(PERIOD_NS as i64 / 1_000)),
        ("times_the_rates_of_p1", Value::ByEffort(TIMES_P1)),
        ("operation", Text("cube_octet")),
    ],
    leaves_out: |cell, _| {
        // One client at a rate costs what it costs back to back.
        let is_known = cell.number(CLIENTS) == 1 && cell.is(CALLS, AT_RATES);
        let is_compared = cell.is(CALLS, BACK_TO_BACK)
            && OVER_OTHERS.iter().any(|preset| cell.is(PRESET, preset));
        is_known || (cell.has(TRANSPORT) && !is_compared)
    },
    plots,
    says: computed::SAYS,
    computed: computed::compute,
    ..Study::with(|context, _| LineUp::start(context))
};

/// Counts and processor time of a request, by preset and side.
fn plots() -> Vec<Plot> {
    let plot = |id: &str, title: &str| {
        Plot::bars(id, title)
            .of(labels([("part", "count".into()), (CLIENTS, TEN.into())]))
            .x(PRESET)
    };
    let phases = plot("phases", "Where the processor time of a request goes");
    let of_phases = labels_with(&phases.of, [("what", "cpu_time_of".into())]);
    vec![
        plot("counts-a-request", "What a request costs besides time")
            .caption(
                "Ten concurrent clients, one of them of high priority. A preset without a bar needs none of it.",
            )
            .choose([CALLS, "what"])
            .lines(["side", TRANSPORT]),
        phases
            .caption(
                "Ten concurrent clients. The pauses that clients make between calls are a part of their own.",
            )
            .of(of_phases)
            .choose([CALLS, "side", TRANSPORT])
            .lines(["phase"])
            .stacked(),
    ]
}

/// Everybody who can be counted, each while it has its turn.
#[derive(Debug)]
pub struct LineUp {
    peer: Option<OmniOrb>,
    /// What this host can count from outside.
    looks: &'static [Look],
    /// The contestants of the preset that is counted now, one for each transport.
    contestants: Vec<(&'static str, Transport, Contestant)>,
    notes: Vec<String>,
}

/// A count of a run from outside.
type Look = fn(&mut Contestant, &Context, &Run) -> Result<Numbers, LabError>;

impl LineUp {
    fn start(context: &Context) -> Result<Self, LabError> {
        let interrupt = &context.launcher.interrupt;
        let mut notes = Vec::new();
        let peer = match OmniOrb::find(interrupt) {
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Ok(None) => Err(omniorb::HOW_TO_INSTALL.to_owned()),
            Ok(Some(peer)) => Ok(peer),
            Err(error) => Err(error.to_string()),
        };
        let left_out = |why: String| notes.push(format!("omniORB was left out: {why}"));
        let peer = peer.map_err(left_out).ok();
        let looks: &[Look] = if perf::is_usable(interrupt) {
            &[Contestant::system_calls, Contestant::samples]
        } else if strace::is_usable(context.folder()) {
            notes.push(STRACE.to_owned());
            &[Contestant::traced_calls]
        } else {
            notes.push(NOTHING.to_owned());
            &[]
        };
        Ok(Self {
            peer,
            looks,
            contestants: Vec::new(),
            notes,
        })
    }

    /// Starts one, and has it call until connections, buffers and caches are there.
    fn started(
        &self,
        context: &Context,
        preset: &str,
        transport: Transport,
    ) -> Result<Contestant, LabError> {
        let mut contestant = match &self.peer {
            Some(peer) if preset == OMNIORB => Contestant::omniorb(context, peer)?,
            _ => Contestant::rtorb(context, preset, transport)?,
        };
        contestant.run(&ten(WARM_UP_COUNT))?;
        Ok(contestant)
    }
}

impl Subject for LineUp {
    const BLOCKS: Option<&'static str> = Some(PRESET);

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let context = turn.context;
        let peer = self.peer.as_ref().map(|_| OMNIORB);
        let mut presets = Strategies::PRESETS
            .into_iter()
            .map(|(name, _)| name)
            .chain(peer);
        let Some(preset) = presets.find(|preset| cell.is(PRESET, preset)) else {
            return Ok(Sampled::default());
        };
        let transport = Transport::of(cell);
        // Those of the preset before end here. One that fails is started again.
        self.contestants.retain(|(name, ..)| *name == preset);
        let mut known = self.contestants.iter();
        let mut contestant = match known.position(|(_, over, _)| *over == transport) {
            Some(place) => self.contestants.swap_remove(place).2,
            None => self.started(context, preset, transport)?,
        };
        let run = match cell.number(CLIENTS) {
            1 => alone(context.effort),
            _ if cell.is(CALLS, AT_RATES) => at_rates(context.effort, turn.samples),
            _ => ten(turn.samples),
        };
        std::thread::sleep(PAUSE);
        let mut numbers = contestant.count(&run)?;
        let looks = looks_at(&run, preset, context.effort);
        let looks = self.looks.iter().take(looks);
        // Once, and the counts stand without it.
        for look in looks.filter(|_| turn.round == 0) {
            std::thread::sleep(PAUSE);
            match look(&mut contestant, context, &run) {
                Ok(found) => numbers.extend(found),
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => self.notes.push(format!(
                    "What {preset} does with the system was not all found out: {error}"
                )),
            }
        }
        numbers.insert(REQUESTS.to_owned(), run.requests().into());
        let scheduling = contestant.scheduling();
        self.contestants.push((preset, transport, contestant));
        Ok(Sampled {
            scheduling,
            answer: Some(Answer {
                numbers,
                ..Answer::default()
            }),
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        let of_looks = ["kernel_locks", "system_calls"].into_iter();
        let of_looks = of_looks.filter(|_| self.looks.is_empty());
        of_looks
            .map(|what| (labels([("what", what.into())]), NOTHING.to_owned()))
            .collect()
    }

    fn parameters(effort: Effort) -> Parameters {
        let (rounds, samples) = STUDY.amounts.of(effort);
        let run = at_rates(effort, samples);
        let paced = run.pauses() * (rounds * STUDY.factors[0].levels().len()) as u32;
        labels([
            ("requests_per_client_and_round_at_rates", run.count.into()),
            ("paced_seconds", paced.as_secs().into()),
        ])
    }
}

/// A client that calls as fast as it can.
fn alone(effort: Effort) -> Run {
    Run {
        low_clients: 0,
        count: SINGLE_COUNT.of(effort) as u32,
        high_period_ns: 0,
        low_period_ns: 0,
    }
}

/// Ten clients that call as fast as they can. The high-priority one pauses: otherwise it would be through before the others
/// begin.
fn ten(count: usize) -> Run {
    Run {
        low_clients: LOW_CLIENTS,
        count: count as u32,
        high_period_ns: PERIOD_NS,
        low_period_ns: 0,
    }
}

/// Ten clients at the rates of P1, 20 Hz and 10 Hz, or at higher ones and with fewer calls, so that it takes as long as it may.
fn at_rates(effort: Effort, count: usize) -> Run {
    let times = TIMES_P1.of(effort) as u32;
    Run {
        low_clients: LOW_CLIENTS,
        count: (count / SHARE_AT_RATES.of(effort)) as u32,
        high_period_ns: 50_000_000 / times,
        low_period_ns: 100_000_000 / times,
    }
}

/// How many of the looks from outside a run gets: system calls, then phases. Of one client, no phases. They take long: a short run
/// has those of calls at rates alone, as P1 made them. A glance looks no second time at ten clients, and has the phases that P1
/// printed.
fn looks_at(run: &Run, preset: &str, effort: Effort) -> usize {
    let is_short = matches!(effort, Effort::Glance | Effort::Quick);
    let is_at_rates = run.low_period_ns > 0;
    match run.low_clients {
        0 => 1,
        _ if is_at_rates && effort == Effort::Glance => {
            1 + usize::from(PHASES_IN_P1.contains(&preset))
        }
        _ if is_at_rates || !is_short => 2,
        _ if effort == Effort::Glance => 0,
        _ => 1,
    }
}

/// The presets of whose time P1 prints shares.
const PHASES_IN_P1: [&str; 2] = ["corbaplus", "minicool"];
/// The presets that are counted over other transports too: a thread that waits for one connection, and one that waits for many.
const OVER_OTHERS: [&str; 2] = ["default", "tao"];
const PRESET: &str = "preset";
const CLIENTS: &str = "clients";
/// How clients call.
const CALLS: &str = "calls";
const BACK_TO_BACK: &str = "back_to_back";
const AT_RATES: &str = "at_rates";
/// How many times the rates of P1 clients have.
const TIMES_P1: ByEffort = ByEffort {
    glance: 50,
    emulated: 1,
    quick: 50,
    full: 1,
};
/// Of the calls back to back, one in so many is made at rates.
const SHARE_AT_RATES: ByEffort = ByEffort {
    glance: 8,
    emulated: 4,
    quick: 8,
    full: 1,
};
/// Concurrent clients, one of them with a high priority.
const TEN: usize = LOW_CLIENTS as usize + 1;
const WARM_UP_COUNT: usize = 50;
const SINGLE_COUNT: ByEffort = ByEffort {
    glance: 200,
    emulated: 2_000,
    quick: 2_000,
    full: 2_000,
};
const PERIOD_NS: u32 = 100_000;
/// Leaves the CPU to others, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(20);

const STRACE: &str = "System calls were counted by strace, which stops a thread twice a call: with ten clients, locks may be \
                      contended more or less often than when nobody looks. With perf they are not disturbed (Debian: apt \
                      install linux-perf, and run as root).";
const NOTHING: &str = "System calls and kernel-level locks were not counted: neither perf nor strace can be used here (Debian: \
                       apt install linux-perf strace, and run as root).";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Claim;
    use rtorb_results::cells::Cells;
    use rtorb_results::claim::Grounds;

    #[test]
    fn phases_are_of_ten_clients_and_of_all_their_runs_when_it_is_full() {
        let of = |preset: &str, effort: Effort| {
            let runs = [alone(effort), ten(400), at_rates(effort, 400)];
            runs.map(|run| looks_at(&run, preset, effort))
        };
        assert_eq!(of("tao", Effort::Full), [1, 2, 2]);
        assert_eq!(of("tao", Effort::Quick), [1, 1, 2]);
        assert_eq!(of("tao", Effort::Glance), [1, 0, 1]);
        assert_eq!(of("minicool", Effort::Glance), [1, 0, 2]);
    }

    #[test]
    fn a_host_that_counts_nothing_from_outside_is_no_failure() {
        let counts_nothing = LineUp {
            peer: None,
            looks: &[],
            contestants: Vec::new(),
            notes: Vec::new(),
        };
        let (cells, planned) = (Cells::default(), STUDY.cells(Effort::Quick));
        let of = |absent: &[(Labels, String)]| {
            let grounds = Grounds {
                planned: &planned,
                absent,
                ..Grounds::of(&cells, 2)
            };
            let claims = STUDY.says.evaluate(&grounds).claims;
            let failures = claims.into_iter().filter(Claim::is_failure);
            failures.map(|claim| claim.id).collect::<Vec<_>>()
        };
        let (with, without) = (of(&[]), of(&counts_nothing.absent()));
        let counted = ["kernel-locks", "system-calls.shm"];
        assert!(counted.iter().all(|id| with.iter().any(|it| it == id)));
        // What is counted inside is measured by every host.
        let excused = with.iter().filter(|id| !without.contains(id));
        assert_eq!(excused.collect::<Vec<_>>(), counted);
    }

    #[test]
    fn every_preset_is_counted() {
        let levels = STUDY.factors[0].levels().into_iter();
        let presets = Strategies::PRESETS.iter().map(|(name, _)| *name);
        let presets = presets.chain([OMNIORB]);
        assert!(levels.eq(presets.map(|preset| Some(LabelValue::from(preset)))));
    }
}

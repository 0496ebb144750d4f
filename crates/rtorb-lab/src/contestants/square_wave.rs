//! A square wave in, a digital output set: how P4 measures a call `Put::Port` (section 2.1) and an event through the real-time
//! event channel (section 2.2).
//!
//! A [`supplier`] is a process with a thread for each wave, which calls the wave's [`receiver`] at every edge, rising and
//! falling, or sends it an event; a receiver is a process whose servant sets an output. All of them write moments of
//! CLOCK_MONOTONIC into memory that is there before a run begins, and tell them after it. The [`pulse`] is made by a timer, or
//! comes through real lines ([`gpio`]).
//!
//! The laboratory asks in two steps, so that nothing but the run itself is measured: the supplier's threads are made and warmed
//! up in the first, and wait at a barrier until the second.

use serde::{Deserialize, Serialize};
use strum::VariantNames;

pub mod clocks;
pub mod gpio;
pub mod oscilloscope;
pub mod pulse;
pub mod receiver;
pub(crate) mod roles;
pub mod supplier;
pub mod system;

#[allow(missing_docs, clippy::all, reason = "generated")]
pub(crate) mod idl {
    rtorb::include_idl!("benchmark");
}

/// What a supplier is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// From the first moment at which an edge counts to the last.
    pub duration_ns: u64,
    /// Octets of `data` in each call.
    pub payload_bytes: usize,
    /// How an edge gets to its receiver.
    pub path: Path,
    /// At least one, each with a receiver of its own.
    pub waves: Vec<Wave>,
}

/// How an edge gets from the supplier to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// By a call of `Put::Port`, whose reply is waited for.
    Call,
    /// By an event through the event channel, whose only answer is the output.
    Event,
}

/// A square wave on one of the supplier's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wave {
    /// Which of the supplier's receivers is called, and through which of its inputs the wave comes.
    pub receiver: usize,
    /// The CORBA priority of the calls; 0 leaves the scheduling as it is.
    pub priority: u8,
    /// From one edge to the next where a timer makes them.
    pub period_ns: u64,
    /// Each edge comes so much earlier or less, evenly spread, where a timer makes them.
    pub lead_ns_max: u64,
}

impl Run {
    /// Refuses what was never meant.
    fn check(&self) -> Result<(), String> {
        let wrong = |wave: &&Wave| {
            wave.period_ns <= wave.lead_ns_max
                || wave.priority > 99
                || self.duration_ns / wave.period_ns > EDGES_MAX as u64
        };
        if let Some(wave) = self.waves.iter().find(wrong) {
            return Err(format!(
                "not a wave of at most {EDGES_MAX} edges in {} ns: {wave:?}",
                self.duration_ns
            ));
        }
        if self.payload_bytes > PAYLOAD_BYTES_MAX || self.waves.len() > WAVES_MAX {
            return Err(format!("more than was ever meant: {self:?}"));
        }
        Ok(())
    }
}

/// An edge and the call that it made; all moments in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// When the input changed.
    pub edge_ns: u64,
    /// When the supplier's thread knew of it.
    pub running_ns: u64,
    /// When the reply was back, or the event was sent.
    pub reply_ns: u64,
    /// What the input changed to: 0 or 1.
    pub level: u64,
}

/// A change of an input or an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// To what: 0 or 1.
    pub level: u64,
}

/// The latencies of one wave in a run, in nanoseconds and in the order of its edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// When the input changed, in nanoseconds of CLOCK_MONOTONIC.
    pub edges_ns: Vec<u64>,
    /// Of each [`Part`], in their order.
    pub parts_ns: [Vec<u64>; Part::ALL.len()],
    /// Outputs that were set to another level than their edge's.
    pub wrong: u64,
}

/// From which moment to which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Part {
    /// From the edge until the output was set: all that P4's oscilloscope sees.
    Call,
    /// From the edge until the supplier's thread ran.
    Wakeup,
    /// From then until the output was set.
    Request,
    /// From then until the reply was back, or the event was sent.
    RoundTrip,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 4] = [Self::Call, Self::Wakeup, Self::Request, Self::RoundTrip];

    /// The value of the label `part`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::VARIANTS[self as usize]
    }

    fn of(self, called: &Called, set: &Edge) -> u64 {
        let (from_ns, to_ns) = match self {
            Self::Call => (called.edge_ns, set.at_ns),
            Self::Wakeup => (called.edge_ns, called.running_ns),
            Self::Request => (called.running_ns, set.at_ns),
            Self::RoundTrip => (called.running_ns, called.reply_ns),
        };
        to_ns.saturating_sub(from_ns)
    }
}

impl Latencies {
    /// Puts what a supplier's thread and its receiver saw together: the first output belongs to the first edge, and so on.
    ///
    /// # Errors
    /// That there are more of one than of the other, so that nobody knows what belongs together.
    pub fn of(called: &[Called], set: &[Edge]) -> Result<Self, String> {
        if called.len() != set.len() {
            return Err(format!(
                "{} edges and {} changes of the output do not belong together",
                called.len(),
                set.len()
            ));
        }
        let both = || called.iter().zip(set);
        let part_ns = |part: Part| both().map(|(called, set)| part.of(called, set)).collect();
        Ok(Self {
            edges_ns: called.iter().map(|called| called.edge_ns).collect(),
            parts_ns: Part::ALL.map(part_ns),
            wrong: both()
                .filter(|(called, set)| called.level != set.level)
                .count() as u64,
        })
    }
}

/// The latencies of one wave, by what another wave's thread did when the edge came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meetings {
    /// Its call was in progress: it had begun to run, and the reply was not back.
    pub in_progress: Latencies,
    /// It had no edge to serve.
    pub none: Latencies,
}

impl Meetings {
    /// Of the edges of `latencies` with the calls of `others`. Edges between an edge of the others and the moment at which its
    /// thread ran are of neither kind: one timer interrupt may serve both.
    #[must_use]
    pub fn of(latencies: &Latencies, others: &Latencies) -> Self {
        let calls = others.calls();
        let mut meetings = Self::default();
        for (place, edge_ns) in latencies.edges_ns.iter().enumerate() {
            // A thread makes its calls one after the other, so that this is the only one that can be in progress.
            let next = calls.partition_point(|call| call.reply_ns <= *edge_ns);
            match calls.get(next) {
                Some(call) if call.running_ns <= *edge_ns => {
                    meetings.in_progress.take(latencies, place);
                }
                Some(call) if call.edge_ns <= *edge_ns => {}
                Some(_) | None => meetings.none.take(latencies, place),
            }
        }
        meetings
    }
}

impl Latencies {
    fn calls(&self) -> Vec<Called> {
        let part = |part: Part| self.parts_ns[part as usize].iter();
        let waits = part(Part::Wakeup).zip(part(Part::RoundTrip));
        let edges = self.edges_ns.iter().zip(waits);
        let called = edges.map(|(edge_ns, (wakeup_ns, round_trip_ns))| Called {
            edge_ns: *edge_ns,
            running_ns: edge_ns + wakeup_ns,
            reply_ns: edge_ns + wakeup_ns + round_trip_ns,
            level: 0,
        });
        called.collect()
    }

    /// Adds one edge of others.
    fn take(&mut self, others: &Self, place: usize) {
        self.edges_ns.extend(others.edges_ns.get(place));
        for (part, of_others) in self.parts_ns.iter_mut().zip(&others.parts_ns) {
            part.extend(of_others.get(place));
        }
    }
}

/// More than any run has: as many outputs as a receiver has room for. The edges of two waves fit into a line of JSON.
pub const EDGES_MAX: usize = 1 << 12;
const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Of the two priorities.
const WAVES_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run {
            duration_ns: 500_000_000,
            payload_bytes: 64,
            path: Path::Event,
            waves: vec![Wave {
                receiver: 1,
                priority: 60,
                period_ns: 1_000_000,
                lead_ns_max: 100_000,
            }],
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let mut too_many = run();
        too_many.waves[0].period_ns = 100_001;
        too_many.duration_ns = 10_000_000_000;
        let mut backwards = run();
        backwards.waves[0].lead_ns_max = 1_000_000;
        let mut too_long = run();
        too_long.payload_bytes = usize::MAX;
        for run in [too_many, backwards, too_long] {
            assert!(run.check().is_err(), "{run:?}");
        }
        assert_eq!(run().check(), Ok(()));
    }

    #[test]
    fn the_parts_of_a_latency() {
        let called = Called {
            edge_ns: 1_000,
            running_ns: 1_010,
            reply_ns: 1_050,
            level: 1,
        };
        let right = Edge {
            at_ns: 1_030,
            level: 1,
        };
        let found = Latencies::of(&[called], &[right]).unwrap();
        assert_eq!(found.parts_ns, [[30], [10], [20], [40]].map(Vec::from));
        assert_eq!(found.wrong, 0);
        let wrong = Edge { level: 0, ..right };
        assert_eq!(Latencies::of(&[called], &[wrong]).unwrap().wrong, 1);
        let error = Latencies::of(&[called], &[]).unwrap_err();
        assert!(error.contains("1 edges and 0 changes"), "{error}");
    }

    /// Edges with wake-ups that take 20 and round trips that take 30; outputs are set in the middle of these.
    fn wave(edges_ns: &[u64]) -> Latencies {
        let called = |edge_ns: &u64| Called {
            edge_ns: *edge_ns,
            running_ns: edge_ns + 20,
            reply_ns: edge_ns + 50,
            level: 1,
        };
        let set = |edge_ns: &u64| Edge {
            at_ns: edge_ns + 35,
            level: 1,
        };
        let called: Vec<Called> = edges_ns.iter().map(called).collect();
        let set: Vec<Edge> = edges_ns.iter().map(set).collect();
        Latencies::of(&called, &set).unwrap()
    }

    #[test]
    fn an_edge_meets_a_call_only_while_that_is_in_progress() {
        let others = wave(&[1_000, 2_000, 3_000]);
        let edges_ns = [
            999, 1_000, 1_019, 1_020, 1_049, 1_050, 2_030, 2_999, 3_060, 4_000,
        ];
        let found = Meetings::of(&wave(&edges_ns), &others);
        assert_eq!(found.in_progress.edges_ns, [1_020, 1_049, 2_030]);
        assert_eq!(found.none.edges_ns, [999, 1_050, 2_999, 3_060, 4_000]);
        assert_eq!(found.in_progress.parts_ns[Part::Call as usize], [35; 3]);
    }

    #[test]
    fn without_others_nobody_is_met() {
        let found = Meetings::of(&wave(&[1, 2]), &Latencies::default());
        assert_eq!(found.none, wave(&[1, 2]));
        assert_eq!(found.in_progress, Latencies::default());
    }
}

//! A square wave in, `Put::Port` out: how P4 (section 2.1) measures a call from a digital input to a digital output.
//!
//! A [`supplier`] is a process with a thread for each wave, which calls the wave's [`receiver`] at every edge, rising and
//! falling; a receiver is a process whose servant sets an output. All of them write moments of CLOCK_MONOTONIC into memory
//! that is there before a run begins, and tell them after it. The [`pulse`] is made by a timer, or comes through real
//! lines ([`gpio`]).
//!
//! ```text
//! {"duration_ns":500000000,"payload_bytes":0,"waves":[...]}      asked of the supplier: threads are made and warmed up
//! prepared
//! clear                                                          asked of each receiver: forgets what was set until now
//! cleared
//! go                                                             asked of the supplier
//! ran 500 498                                                    edges of each wave, then four 64-bit numbers of each
//! outputs                                                        asked of each receiver
//! outputs 500 0                                                  outputs set and octets of data, then two numbers of each
//! ```
//!
//! What cannot be done is answered by `error TEXT`. All numbers after a line are unsigned and little-endian.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub mod gpio;
pub mod pulse;
pub mod receiver;
pub mod recorded;
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
    /// At least one, each with a receiver of its own.
    pub waves: Vec<Wave>,
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

impl FromStr for Run {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let run: Self =
            serde_json::from_str(line).map_err(|error| format!("no run: {error}: {line:?}"))?;
        let wrong = |wave: &&Wave| {
            wave.period_ns <= wave.lead_ns_max
                || wave.priority > 99
                || run.duration_ns / wave.period_ns > EDGES_MAX as u64
        };
        if let Some(wave) = run.waves.iter().find(wrong) {
            return Err(format!(
                "not a wave of at most {EDGES_MAX} edges in {} ns: {wave:?}",
                run.duration_ns
            ));
        }
        match run.payload_bytes <= PAYLOAD_BYTES_MAX && run.waves.len() <= WAVES_MAX {
            true => Ok(run),
            false => Err(format!("more than was ever meant: {line:?}")),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        formatter.write_str(&line)
    }
}

/// An edge and the call that it made; all moments in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// When the input changed.
    pub edge_ns: u64,
    /// When the supplier's thread knew of it.
    pub running_ns: u64,
    /// When the reply was back.
    pub reply_ns: u64,
    /// What the input changed to: 0 or 1.
    pub level: u64,
}

/// An output that was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// When.
    pub at_ns: u64,
    /// To what: 0 or 1.
    pub level: u64,
}

/// The latencies of one wave in a run, in nanoseconds and in the order of its edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Of each [`Part`], in their order.
    pub parts_ns: [Vec<u64>; Part::ALL.len()],
    /// Outputs that were set to another level than their edge's.
    pub wrong: u64,
}

/// From which moment to which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// From the edge until the output was set: all that P4's oscilloscope sees.
    Call,
    /// From the edge until the supplier's thread ran.
    Wakeup,
    /// From then until the output was set.
    Request,
    /// From then until the reply was back.
    RoundTrip,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 4] = [Self::Call, Self::Wakeup, Self::Request, Self::RoundTrip];

    /// The value of the label `part`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Wakeup => "wakeup",
            Self::Request => "request",
            Self::RoundTrip => "round_trip",
        }
    }

    fn of(self, called: &Called, set: &Set) -> u64 {
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
    pub fn of(called: &[Called], set: &[Set]) -> Result<Self, String> {
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
            parts_ns: Part::ALL.map(part_ns),
            wrong: both()
                .filter(|(called, set)| called.level != set.level)
                .count() as u64,
        })
    }
}

fn little_endian(octets: &[u8]) -> u64 {
    let octets = octets.iter().rev();
    octets.fold(0, |sum, octet| sum << 8 | u64::from(*octet))
}

/// More than any run has: as many outputs as a receiver has room for.
pub const EDGES_MAX: usize = 1 << 14;
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
            waves: vec![Wave {
                receiver: 1,
                priority: 60,
                period_ns: 1_000_000,
                lead_ns_max: 100_000,
            }],
        }
    }

    #[test]
    fn a_run_is_read_back() {
        assert_eq!(run().to_string().parse(), Ok(run()));
        assert!(!run().to_string().contains('\n'));
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
            assert!(run.to_string().parse::<Run>().is_err(), "{run}");
        }
        assert!("pigeon".parse::<Run>().unwrap_err().contains("pigeon"));
    }

    #[test]
    fn the_parts_of_a_latency() {
        let called = Called {
            edge_ns: 1_000,
            running_ns: 1_010,
            reply_ns: 1_050,
            level: 1,
        };
        let right = Set {
            at_ns: 1_030,
            level: 1,
        };
        let found = Latencies::of(&[called], &[right]).unwrap();
        assert_eq!(found.parts_ns, [[30], [10], [20], [40]].map(Vec::from));
        assert_eq!(found.wrong, 0);
        let wrong = Set { level: 0, ..right };
        assert_eq!(Latencies::of(&[called], &[wrong]).unwrap().wrong, 1);
        let error = Latencies::of(&[called], &[]).unwrap_err();
        assert!(error.contains("1 edges and 0 changes"), "{error}");
    }
}

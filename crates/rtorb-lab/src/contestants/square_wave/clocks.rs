//! When an output on another host was set, in the time of the supplier's host.

use rtorb_os::clock::monotonic_ns;
use rustix::time::{ClockId, clock_gettime};

use super::receiver::Outputs;
use super::{Called, Edge};
use crate::experiment::{Clocks, Context};
use crate::processes::Launcher;

/// How the end of a latency is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// CLOCK_MONOTONIC of the receiver is the supplier's: both run on one machine.
    Ours,
    /// CLOCK_REALTIME of both hosts is disciplined, and never further apart than this.
    Disciplined {
        /// In nanoseconds.
        error_ns: u64,
    },
    /// This host receives a datagram.
    Datagram,
}

impl Clock {
    /// That of the servers of this launcher.
    #[must_use]
    pub fn of(context: &Context, launcher: &Launcher) -> Self {
        match (context.clocks, launcher.agent()) {
            (_, None) => Self::Ours,
            (Some(Clocks::Disciplined { error_ns }), _) => Self::Disciplined { error_ns },
            (Some(Clocks::Datagram), _) => Self::Datagram,
            (None, Some(agent)) if agent.has_our_clock() => Self::Ours,
            (None, Some(_)) => Self::Datagram,
        }
    }

    /// The value of the label `clock`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "one",
            Self::Disciplined { .. } => "disciplined",
            Self::Datagram => "datagram",
        }
    }
}

/// The changes that a receiver remembers by its own disciplined clock, in the time of this host, whose CLOCK_REALTIME was ahead of
/// CLOCK_MONOTONIC by `ours_ahead_ns` before and after the run.
///
/// # Errors
/// That a clock was set during the run, or that an output was set before its edge by more than the error.
pub fn in_our_time(
    outputs: &Outputs,
    called: &[Called],
    ours_ahead_ns: [i64; 2],
    error_ns: u64,
) -> Result<Vec<Edge>, String> {
    for (whose, ahead_ns) in [("its", outputs.realtime_ahead_ns), ("our", ours_ahead_ns)] {
        let step_ns = ahead_ns[0].abs_diff(ahead_ns[1]);
        if step_ns > STEP_NS_MAX {
            return Err(format!(
                "{whose} CLOCK_REALTIME was set by {step_ns} ns during the run"
            ));
        }
    }
    let later_ns = outputs.realtime_ahead_ns[1] - ours_ahead_ns[1];
    let in_our_time = |set: &Edge| Edge {
        at_ns: set.at_ns.saturating_add_signed(later_ns),
        level: set.level,
    };
    let set: Vec<Edge> = outputs.set.iter().map(in_our_time).collect();
    let early = |(called, set): (&Called, &Edge)| called.edge_ns.saturating_sub(set.at_ns);
    match called.iter().zip(&set).map(early).max() {
        Some(early_ns) if early_ns > error_ns => Err(format!(
            "its output was set {early_ns} ns before the edge: the clocks are further apart than {error_ns} ns"
        )),
        _ => Ok(set),
    }
}

/// Far more than two readings of the clocks differ by.
const STEP_NS_MAX: u64 = 20_000;

/// CLOCK_REALTIME less CLOCK_MONOTONIC, in nanoseconds.
///
/// It is right to half the time of three reads. It changes when CLOCK_REALTIME is set, and not when its rate is adjusted: both clocks
/// are adjusted together.
pub(super) fn realtime_ahead_ns() -> i64 {
    let read = |_| {
        let before_ns = monotonic_ns();
        let real = clock_gettime(ClockId::Realtime);
        let after_ns = monotonic_ns();
        let middle_ns = before_ns + (after_ns - before_ns) / 2;
        let real_ns = real.tv_sec * 1_000_000_000 + real.tv_nsec;
        (after_ns - before_ns, real_ns - middle_ns.cast_signed())
    };
    // An interrupt may come between two reads, but hardly in each attempt.
    let (_, ahead_ns) = (0..5).map(read).min().unwrap_or_default();
    ahead_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that was set at 1,500 of a clock that is `later_ns` behind ours, after an edge at 1,000 of ours.
    fn told(later_ns: i64, step_ns: i64, error_ns: u64) -> Result<Vec<Edge>, String> {
        let outputs = Outputs {
            set: vec![Edge {
                at_ns: 1_500,
                level: 1,
            }],
            realtime_ahead_ns: [7_000 + later_ns + step_ns, 7_000 + later_ns],
            ..Outputs::default()
        };
        let called = Called {
            edge_ns: 1_000,
            ..Called::default()
        };
        in_our_time(&outputs, &[called], [7_000; 2], error_ns)
    }

    #[test]
    fn a_moment_of_another_clock_is_converted_to_our_time() {
        let set = told(250, 0, 0).unwrap();
        assert_eq!(
            set,
            [Edge {
                at_ns: 1_750,
                level: 1
            }]
        );
        assert_eq!(told(-400, 0, 0).unwrap()[0].at_ns, 1_100);
    }

    #[test]
    fn clocks_that_are_further_apart_than_was_said_are_refused() {
        let why = told(-700, 0, 100).unwrap_err();
        assert!(why.contains("200 ns before the edge"), "{why}");
        assert_eq!(told(-700, 0, 300).unwrap()[0].at_ns, 800);
        let why = told(0, 1_000_000, 300).unwrap_err();
        assert!(why.contains("was set by 1000000 ns"), "{why}");
    }
}

//! A burst: calls of one kind, one after another or at a rate, timed one by one by a client process.
//!
//! Every contestant, in whatever language, is driven alike, and stays warm while the others have their turn. A client that cannot make
//! a burst says why and goes on.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::timer::PeriodicTimer;
use serde::{Deserialize, Serialize};

use crate::contestants::operations::Operation;
use crate::error::LabError;
use crate::processes::Process;
use crate::processes::questions::{self, Reply};

/// What a client is asked for.
///
/// The order of the fields is that in which `peers/omniorb/cubit.cc` reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// What is timed.
    pub verb: Verb,
    /// Of which operation.
    pub operation: Operation,
    /// Elements of a sequence.
    pub len: usize,
    /// Calls made first and not counted.
    pub warm_up: usize,
    /// Calls that are counted.
    pub count: usize,
    /// The burst ends early, with fewer samples, when it has taken so long: real-time tasks that never leave the CPU
    /// are throttled.
    pub budget_ns: u64,
    /// The bytes of the request, for contestants that know no messages.
    pub request_bytes: usize,
    /// The bytes of the reply.
    pub reply_bytes: usize,
    /// From the release of a call to that of the next one; 0 makes one directly after the other.
    pub period_ns: u64,
}

impl Burst {
    /// Has a client run it.
    ///
    /// # Errors
    /// What the client said went wrong, or that it ended or was silent.
    pub fn ask(&self, client: &mut Process) -> Result<Samples, LabError> {
        let within = Duration::from_nanos(self.budget_ns);
        let Reply { value, series } = client.ask_for_series::<BurstEnd>(self, within)?;
        Ok(Samples {
            times_ns: series.into_iter().flatten().collect(),
            wrong: value.wrong,
            elapsed_ns: value.elapsed_ns,
        })
    }
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// The call.
    Call,
    /// What the servant does with the argument, here, without a call.
    Work,
    /// Writing the argument to a message and reading it back, here, without a call: half of what a call marshals.
    Marshal,
}

/// The samples of a burst.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The time of each call in nanoseconds, in the order they were made.
    pub times_ns: Vec<u64>,
    /// How many answers were wrong.
    pub wrong: u64,
    /// From before the first counted call until the server had served the last.
    pub elapsed_ns: u64,
}

impl Samples {
    /// With room for a burst, so that recording makes no heap call.
    #[must_use]
    pub fn for_burst(burst: &Burst) -> Self {
        Self {
            times_ns: Vec::with_capacity(burst.count),
            wrong: 0,
            elapsed_ns: 0,
        }
    }

    /// Times `call` as often as the burst says, or as its budget allows: from before it, or at a rate from its planned release.
    /// `call` answers whether the result is right, and
    /// is given the chance to check it after the clock was read.
    ///
    /// # Errors
    /// The first error of a call, with the number of the call that met it.
    pub fn time<T, E: fmt::Display>(
        &mut self,
        burst: &Burst,
        mut call: impl FnMut() -> Result<T, E>,
        is_right: impl Fn(&T) -> bool,
    ) -> Result<(), String> {
        for index in 0..burst.warm_up {
            call().map_err(|error| format!("warm-up call {index}: {error}"))?;
        }
        let begin_ns = monotonic_ns();
        let mut timer = (burst.period_ns > 0)
            .then(|| PeriodicTimer::starting_at(begin_ns + burst.period_ns, burst.period_ns));
        for index in 0..burst.count {
            let before_ns = match &mut timer {
                Some(timer) => timer.wait_each().scheduled_ns,
                None => monotonic_ns(),
            };
            let result = call();
            let after_ns = monotonic_ns();
            let result = result.map_err(|error| format!("call {index}: {error}"))?;
            self.wrong += u64::from(!is_right(&result));
            // The capacity was reserved by `for_burst`.
            self.times_ns.push(after_ns - before_ns);
            if after_ns - begin_ns > burst.budget_ns {
                break;
            }
        }
        self.elapsed_ns = monotonic_ns() - begin_ns;
        Ok(())
    }

    /// As [`time`](Self::time), with a number of calls in flight, and not at a rate. A call is timed from before its `start` until `end` has
    /// its result, which is taken once it is the oldest call.
    ///
    /// # Errors
    /// The first error of a call, with the number of the call that met it. The calls behind it are dropped.
    pub fn time_in_flight<C, T, E: fmt::Display>(
        &mut self,
        burst: &Burst,
        in_flight: usize,
        mut start: impl FnMut() -> C,
        mut end: impl FnMut(C) -> Result<T, E>,
        is_right: impl Fn(&T) -> bool,
    ) -> Result<(), String> {
        let mut begun = VecDeque::with_capacity(in_flight);
        for (kind, calls) in [("warm-up call", burst.warm_up), ("call", burst.count)] {
            self.times_ns.clear();
            self.wrong = 0;
            let begin_ns = monotonic_ns();
            for index in 0..calls {
                while begun.len() < in_flight.min(calls - index) {
                    begun.push_back((monotonic_ns(), start()));
                }
                let Some((before_ns, call)) = begun.pop_front() else {
                    return Err("no call is to be in flight".to_owned());
                };
                let result = end(call);
                let after_ns = monotonic_ns();
                let result = result.map_err(|error| format!("{kind} {index}: {error}"))?;
                self.wrong += u64::from(!is_right(&result));
                self.times_ns.push(after_ns - before_ns);
                if after_ns - begin_ns > burst.budget_ns {
                    break;
                }
            }
            begun.clear();
            self.elapsed_ns = monotonic_ns() - begin_ns;
        }
        Ok(())
    }

    /// Calls a second over the elapsed time; `None` when nothing was measured.
    #[must_use]
    pub fn calls_per_second(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.times_ns.len() as f64 * 1e9 / self.elapsed_ns as f64)
    }

    fn into_reply(self) -> Reply<BurstEnd> {
        Reply {
            value: BurstEnd {
                wrong: self.wrong,
                elapsed_ns: self.elapsed_ns,
            },
            series: vec![self.times_ns],
        }
    }
}

/// What a client says of a burst, whose samples follow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BurstEnd {
    wrong: u64,
    elapsed_ns: u64,
}

/// Answers bursts on standard input until it ends.
pub(crate) fn answer(mut run: impl FnMut(&Burst) -> Result<Samples, String>) -> Result<(), String> {
    questions::serve(|burst| Ok(run(&bounded(burst))?.into_reply()))
}

fn bounded(burst: Burst) -> Burst {
    Burst {
        count: burst.count.min(SAMPLES_MAX),
        ..burst
    }
}

/// Thirty-two mebibytes of samples: no experiment asks for more in one burst.
const SAMPLES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::questions::tests::replies;

    const BURST: Burst = Burst {
        verb: Verb::Call,
        operation: Operation::OctetSequence,
        len: 1024,
        warm_up: 3,
        count: 10,
        budget_ns: 60_000_000_000,
        request_bytes: 1100,
        reply_bytes: 1052,
        period_ns: 0,
    };

    #[test]
    fn a_burst_is_read_back() {
        let line = serde_json::to_string(&BURST).unwrap();
        assert_eq!(serde_json::from_str::<Burst>(&line).unwrap(), BURST);
        let read = |line: &str| serde_json::from_str::<Burst>(line).unwrap_err().to_string();
        assert!(read(&line.replace("\"len\":1024,", "")).contains("missing field `len`"));
        assert!(read(&line.replace("call", "sing")).contains("sing"));
        assert!(read(&line.replace("octetseq", "longs")).contains("longseq"));
    }

    #[test]
    fn samples_are_counted_without_the_warm_up_and_without_growing() {
        let mut samples = Samples::for_burst(&BURST);
        let capacity = samples.times_ns.capacity();
        let mut calls = 0;
        let call = || -> Result<u32, String> {
            calls += 1;
            Ok(calls)
        };
        samples
            .time(&BURST, call, |answer| answer % 2 == 0)
            .unwrap();
        assert_eq!(calls, 13);
        assert_eq!((samples.times_ns.len(), samples.wrong), (10, 5));
        assert_eq!(samples.times_ns.capacity(), capacity);
    }

    #[test]
    fn a_budget_ends_a_burst() {
        let burst = Burst {
            budget_ns: 0,
            ..BURST
        };
        let mut samples = Samples::for_burst(&burst);
        samples
            .time(&burst, || Ok::<(), String>(()), |()| true)
            .unwrap();
        assert_eq!(samples.times_ns.len(), 1);
    }

    #[test]
    fn so_many_calls_are_in_flight_and_the_oldest_is_taken_first() {
        let in_flight = std::cell::Cell::new(0_usize);
        let (mut started, mut ended, mut most) = (0, 0, 0);
        let start = || {
            in_flight.set(in_flight.get() + 1);
            started += 1;
            started
        };
        let end = |call: usize| -> Result<usize, String> {
            most = most.max(in_flight.get());
            in_flight.set(in_flight.get() - 1);
            ended += 1;
            assert_eq!(call, ended);
            Ok(call)
        };
        let mut samples = Samples::for_burst(&BURST);
        let is_right = |call: &usize| call.is_multiple_of(2);
        samples
            .time_in_flight(&BURST, 4, start, end, is_right)
            .unwrap();
        assert_eq!((started, ended, most, in_flight.get()), (13, 13, 4, 0));
        assert_eq!((samples.times_ns.len(), samples.wrong), (10, 5));
    }

    /// The first call takes three periods. The next ones begin late, and their times have the lateness.
    #[test]
    fn a_paced_call_is_timed_from_its_release() {
        const PERIOD_NS: u64 = 10_000_000;
        let burst = Burst {
            warm_up: 0,
            count: 4,
            period_ns: PERIOD_NS,
            ..BURST
        };
        let mut samples = Samples::for_burst(&burst);
        let mut calls = 0;
        let first_is_long = || {
            calls += 1;
            if calls == 1 {
                rtorb_os::clock::sleep_until(monotonic_ns() + 3 * PERIOD_NS);
            }
            Ok::<(), String>(())
        };
        samples.time(&burst, first_is_long, |()| true).unwrap();
        let times_ns = &samples.times_ns;
        assert!(times_ns[0] >= 3 * PERIOD_NS, "{times_ns:?}");
        assert!(
            times_ns[1] >= 2 * PERIOD_NS && times_ns[2] >= PERIOD_NS,
            "{times_ns:?}"
        );
    }

    #[test]
    fn a_client_answers_each_line_and_outlives_errors() {
        let burst = serde_json::to_string(&BURST).unwrap();
        let answer = Samples {
            // Longer than 32 bits hold.
            times_ns: vec![1, 7_000_000_000],
            wrong: 0,
            elapsed_ns: 9,
        };
        let questions = format!("{burst}\nnonsense\n{burst}\n");
        let replies = replies(&questions, |burst: Burst| {
            assert_eq!(burst, BURST);
            Ok(answer.clone().into_reply())
        });
        let samples = |reply: &Result<Reply<BurstEnd>, String>| {
            let Reply { value, series } = reply.clone().unwrap();
            assert_eq!((value.wrong, value.elapsed_ns), (0, 9));
            series
        };
        let [first, refused, second] = &replies[..] else {
            panic!("{replies:?}")
        };
        assert_eq!(samples(first), [[1, 7_000_000_000]]);
        assert_eq!(samples(second), [[1, 7_000_000_000]]);
        assert!(refused.as_ref().unwrap_err().contains("nonsense"));
        let huge = Burst {
            count: usize::MAX,
            ..BURST
        };
        assert_eq!(bounded(huge).count, SAMPLES_MAX);
    }
}

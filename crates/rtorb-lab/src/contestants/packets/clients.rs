//! The clients: one that makes small urgent calls at a rate, and some that transfer bulk data as fast as they can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rtorb::rt::Policy;
use rtorb_host::placement::obtained_by_priority;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::thread::{JoinHandle, spawn};
use rtorb_os::timer::PeriodicTimer;

use super::{BULK, BULK_BYTES, Calls, Run, Traffic, URGENT, builder, tcp};
use crate::contestants::clients::{fifo, open};
use crate::contestants::cubit::idl::Cubit;
use crate::contestants::releases::planned_ns;
use crate::processes::barrier::Barrier;
use crate::processes::questions;

/// The clients of the two objects of a [`server`](super::server).
#[derive(Debug)]
pub struct Clients {
    urgent: Cubit,
    bulk: Cubit,
}

impl Clients {
    /// Makes an ORB and takes the references. With `marks`, packets have the marks of their call's priority.
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(marks: bool, urgent: &str, bulk: &str) -> Result<Self, String> {
        let builder = builder()?.client_policies([Policy::ClientProtocol(tcp(marks))]);
        let mut cubits = open(builder, &[urgent, bulk])?.into_iter();
        let mut next = || cubits.next().ok_or("the ORB made too few objects");
        Ok(Self {
            urgent: next()?,
            bulk: next()?,
        })
    }

    /// Makes a [`Run`] for each question, until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub fn serve(self) -> Result<(), String> {
        questions::serve(|run: Run| self.run(&run))
    }

    fn run(&self, run: &Run) -> Result<Calls, String> {
        if run.bulk_clients > BULK_CLIENTS_MAX {
            return Err(format!(
                "{} bulk clients are too many: at most {BULK_CLIENTS_MAX}",
                run.bulk_clients
            ));
        }
        let begin_ns = monotonic_ns();
        let bulk = Bulk::start(&self.bulk, run.bulk_clients)?;
        let (cubit, duration_ns) = (self.urgent.clone(), run.duration_ns);
        let mut barrier = Barrier::default();
        barrier.add("urgent", &fifo(URGENT), move || prepare(cubit, duration_ns))?;
        barrier.await_all()?;
        let scheduling = obtained_by_priority("clients", std::process::id());
        let calls = barrier
            .run(&())?
            .pop()
            .ok_or("there was no urgent client")?;
        let bytes = bulk.finish()?;
        Ok(Calls {
            bulk: Traffic {
                bytes,
                elapsed_ns: monotonic_ns() - begin_ns,
            },
            scheduling,
            ..calls
        })
    }
}

/// Makes a few small calls, and returns what makes those of the run.
fn prepare(
    cubit: Cubit,
    duration_ns: u64,
) -> Result<impl FnOnce(()) -> Result<Calls, String>, String> {
    let answer = move || {
        let answer = cubit.cube_octet(ARGUMENT);
        answer.map_err(|exception| format!("an urgent call: {exception}"))
    };
    for _ in 0..WARM_UP_CALLS {
        answer()?;
    }
    Ok(move |()| call_at_rate(duration_ns, || Ok(answer()? == ANSWER)))
}

/// Makes a call for each release. During a call that takes longer than the period, releases are skipped: they are counted, and each
/// is as late as the reply to the next call. `call` returns whether its answer is right.
fn call_at_rate(
    duration_ns: u64,
    mut call: impl FnMut() -> Result<bool, String>,
) -> Result<Calls, String> {
    let calls_max = usize::try_from(duration_ns / PERIOD_NS + 1).unwrap_or(CALLS_MAX);
    let mut calls = Calls {
        times_ns: Vec::with_capacity(calls_max.min(CALLS_MAX)),
        ..Calls::default()
    };
    let begin_ns = monotonic_ns();
    let end_ns = begin_ns + duration_ns.min(PERIOD_NS * CALLS_MAX as u64);
    let mut timer = PeriodicTimer::starting_at(begin_ns, PERIOD_NS);
    while timer.next_ns() < end_ns {
        let release = timer.wait();
        calls.wrong += u64::from(!call()?);
        let after_ns = monotonic_ns();
        for planned_ns in planned_ns(release, PERIOD_NS).filter(|planned_ns| *planned_ns < end_ns) {
            calls.times_ns.push(after_ns - planned_ns);
            calls.skipped += u64::from(planned_ns < release.scheduled_ns);
        }
    }
    Ok(calls)
}

/// Threads that transfer bulk data. Dropping it has them stop.
#[derive(Debug)]
struct Bulk {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Option<Result<u64, String>>>>,
}

impl Bulk {
    /// Starts the threads. When this returns, each has transferred data once.
    fn start(cubit: &Cubit, clients: usize) -> Result<Self, String> {
        let mut bulk = Self {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        let (tell_begun, begun) = channel();
        for _ in 0..clients {
            let (cubit, stop, tell_begun) =
                (cubit.clone(), Arc::clone(&bulk.stop), tell_begun.clone());
            let transfers = move || transfer(&cubit, &stop, &tell_begun);
            let thread = spawn("bulk", &fifo(BULK), transfers);
            bulk.threads
                .push(thread.map_err(|refused| refused.to_string())?);
        }
        for _ in 0..clients {
            begun
                .recv_timeout(BEGIN_TIMEOUT)
                .map_err(|_| "a bulk client did not begin in time".to_owned())??;
        }
        Ok(bulk)
    }

    /// Stops the threads and returns the bytes that they have transferred in each direction.
    fn finish(mut self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().map(joined).sum()
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Transfers bulk data until it is stopped. The object returns as many bytes as it gets.
fn transfer(
    cubit: &Cubit,
    stop: &AtomicBool,
    begun: &Sender<Result<(), String>>,
) -> Result<u64, String> {
    let data = vec![ARGUMENT; BULK_BYTES];
    let mut bytes = 0;
    while !stop.load(Ordering::Relaxed) {
        let answer = cubit.cube_octet_sequence(&data);
        let answer = answer.map_err(|exception| format!("a bulk transfer: {exception}"));
        // The receiver may have given up.
        if bytes == 0 {
            let _ = begun.send(answer.as_ref().map(drop).map_err(Clone::clone));
        }
        bytes += answer?.len() as u64;
    }
    Ok(bytes)
}

/// The time from one urgent call to the next: 250 a second take less than a twentieth of the link.
pub const PERIOD_NS: u64 = 4_000_000;
/// For the connection, and what the ORB makes for a thread's first call.
const WARM_UP_CALLS: usize = 3;
const ARGUMENT: u8 = 7;
const ANSWER: u8 = ARGUMENT.wrapping_mul(ARGUMENT).wrapping_mul(ARGUMENT);
/// A line of that many times is half as long as the laboratory reads.
const CALLS_MAX: usize = 50_000;
const BULK_CLIENTS_MAX: usize = 16;
const BEGIN_TIMEOUT: Duration = Duration::from_secs(8);

/// The result of a thread, once it has ended.
///
/// # Errors
/// Its error, or that it panicked.
fn joined<T>(thread: JoinHandle<Option<Result<T, String>>>) -> Result<T, String> {
    let result = thread.join().ok().flatten();
    result.ok_or("a client panicked")?
}

#[cfg(test)]
mod tests {
    use rtorb_os::clock::sleep_until;

    use super::*;

    /// The third call takes three and a half periods.
    #[test]
    fn releases_during_a_long_call_are_counted_and_late() {
        let mut calls = 0;
        let one_is_long = || {
            calls += 1;
            if calls == 3 {
                sleep_until(monotonic_ns() + 7 * PERIOD_NS / 2);
            }
            Ok(calls != 1)
        };
        let found = call_at_rate(10 * PERIOD_NS, one_is_long).unwrap();
        assert_eq!((found.times_ns.len(), found.wrong), (10, 1));
        assert!(found.skipped >= 2, "{found:?}");
        assert!(calls + found.skipped >= 10);
        let late = found.times_ns.iter().filter(|ns| **ns > PERIOD_NS / 2);
        assert!(late.count() >= 4, "{found:?}");
    }

    #[test]
    fn a_call_that_fails_ends_the_run() {
        let found = call_at_rate(PERIOD_NS, || Err("no".to_owned()));
        assert_eq!(found.unwrap_err(), "no");
    }
}

//! Threads of a probe that begin together, once all of them are there and their scheduling has been read.

use std::time::Duration;

use rtorb_host::placement;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::ThreadConfig;
use rtorb_results::ObtainedScheduling;

use super::barrier::Barrier;

/// Threads that wait for their beginning. What they measure with must be made before they are added.
#[derive(Debug)]
pub(crate) struct Threads<T> {
    barrier: Barrier<(), T>,
    rest: Duration,
}

impl<T: Send + 'static> Threads<T> {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            barrier: Barrier::default(),
            rest: Duration::ZERO,
        }
    }

    /// So long nobody does anything before they begin: a kernel puts off what it has to free after the start of threads and the
    /// reading of their scheduling, and would do it within the first samples.
    pub(crate) fn rest_before(&mut self, rest: Duration) {
        self.rest = rest;
    }

    /// Adds one on the caller's CPUs; `policy` is the caller's own where there is none.
    ///
    /// # Errors
    /// What the host refused.
    pub(crate) fn add(
        &mut self,
        name: &str,
        policy: Option<SchedPolicy>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(), String> {
        self.add_on(&[], name, policy, work)
    }

    /// Adds one on these CPUs; on the caller's where there are none.
    ///
    /// # Errors
    /// What the host refused.
    pub(crate) fn add_on(
        &mut self,
        cpus: &[usize],
        name: &str,
        policy: Option<SchedPolicy>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(), String> {
        let config = ThreadConfig {
            policy,
            affinity: cpus.to_vec(),
            stack_bytes: Some(STACK_BYTES),
        };
        self.barrier.add(name, &config, || Ok(|()| work()))
    }

    /// Lets them all begin and waits for their ends: the scheduling that they had, and what they answer, in the order in
    /// which they were added. `process` names them in the results.
    ///
    /// # Errors
    /// That one panicked.
    pub(crate) fn run(self, process: &str) -> Result<(Vec<ObtainedScheduling>, Vec<T>), String> {
        self.barrier.await_all()?;
        let scheduling = placement::obtained_by_priority(process, std::process::id());
        std::thread::sleep(self.rest);
        // One that has ended before says so below.
        let _ = self.barrier.open(&());
        let answers = self.barrier.join().into_iter();
        let answers = answers.map(|answer| {
            answer.ok_or_else(|| format!("{process}: a thread did not come to its end"))
        });
        Ok((scheduling, answers.collect::<Result<_, _>>()?))
    }
}

/// Enough for a loop that calls little.
const STACK_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_answer_in_order_and_their_scheduling_is_told() {
        let mut threads = Threads::new();
        for number in 0..3 {
            threads.add("together", None, move || number).unwrap();
        }
        let (scheduling, answers) = threads.run("test").unwrap();
        assert_eq!(answers, [0, 1, 2]);
        assert!(
            scheduling
                .iter()
                .any(|kind| kind.process.contains("together")),
            "{scheduling:?}"
        );
    }

    #[test]
    fn a_panic_is_an_error_and_who_is_never_told_to_begin_does_not() {
        let mut threads = Threads::new();
        threads
            .add("panics", None, || panic!("on purpose"))
            .unwrap();
        assert!(threads.run("test").unwrap_err().contains("test"));
        let mut dropped = Threads::new();
        dropped
            .add("waits", None, || -> u8 { unreachable!() })
            .unwrap();
        assert_eq!(dropped.barrier.join(), [None]);
    }
}

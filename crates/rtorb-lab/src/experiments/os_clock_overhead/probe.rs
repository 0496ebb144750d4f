//! The program P of P3 Eq. (1), timed in a process of its own while a tick interrupts it.

use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::ThreadConfig;
use serde::{Deserialize, Serialize};

use super::tick::{Tick, TickThread, Ticks, Times};
use crate::processes::begin_together::Threads;
use crate::processes::computation::Computation;
use crate::processes::probe::{self, Answer};

/// Executions of P, one configuration after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What P computes.
    pub(super) program: Computation,
    /// The CPU of P and of the tick.
    pub(super) cpu: Option<usize>,
    /// Whether both have SCHED_FIFO.
    pub(super) real_time: bool,
    pub(super) executions: Vec<Executions>,
}

/// Executions in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Executions {
    pub(super) tick: Tick,
    /// From tick to tick.
    pub(super) resolution_ns: u64,
    /// From the beginning of P to the first tick.
    pub(super) first_ns: u64,
    /// From the beginning of P until no thread ticks any more.
    pub(super) end_ns: u64,
    pub(super) count: usize,
}

impl Executions {
    /// The first tick comes after one resolution, or in the middle of P where that would be after its end.
    pub(super) fn of(tick: Tick, resolution_ns: u64, count: usize) -> Self {
        let is_coarse = resolution_ns >= super::PROGRAM_NS;
        Self {
            tick,
            resolution_ns,
            first_ns: if is_coarse {
                super::PROGRAM_NS / 2
            } else {
                resolution_ns
            },
            end_ns: u64::MAX,
            count,
        }
    }

    /// The kind of ticks and their distance in the cell that has these executions.
    pub(super) fn of_cell(&self) -> super::CellTicks {
        let has_ticks = self.first_ns < super::PROGRAM_NS;
        (has_ticks.then_some(self.tick), self.resolution_ns)
    }

    /// The first tick comes only after P: how e is measured.
    pub(super) fn without_ticks(tick: Tick, count: usize) -> Self {
        let resolution_ns = 1_000 * super::COARSEST_US as u64;
        Self {
            tick,
            resolution_ns,
            first_ns: resolution_ns,
            end_ns: u64::MAX,
            count,
        }
    }

    /// By a thread, which stops after this time from the beginning of P, however far P has come.
    pub(super) fn until(end_ns: u64, resolution_ns: u64, count: usize) -> Self {
        Self {
            end_ns,
            ..Self::of(Tick::Thread, resolution_ns, count)
        }
    }
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-clock-overhead";

    /// Answers for each configuration two series: the time of each execution, and how many ticks there were in it.
    fn answer(&self) -> Result<Answer, String> {
        let count: usize = self.executions.iter().map(|some| some.count).sum();
        if count > EXECUTIONS_MAX {
            return Err(format!("{count} executions are too many for one self"));
        }
        let ticking = TickThread::start(&self.config(TICK_PRIORITY))?;
        let asked = self.clone();
        let config = self.config(PROGRAM_PRIORITY);
        let mut threads = Threads::new();
        threads.add_on(&config.affinity, "program", config.policy, move || {
            asked.execute_all(&mut Ticks::for_this_thread(ticking)?)
        })?;
        let (scheduling, mut answers) = threads.run("clock-overhead")?;
        let samples = answers.pop().ok_or("no program ran")??;
        Ok(Answer {
            samples,
            scheduling,
            ..Answer::default()
        })
    }
}

impl Question {
    fn config(&self, priority: u8) -> ThreadConfig {
        ThreadConfig {
            policy: self.real_time.then_some(SchedPolicy::Fifo(priority)),
            affinity: self.cpu.into_iter().collect(),
            ..ThreadConfig::default()
        }
    }

    fn execute_all(&self, ticks: &mut Ticks) -> Result<Vec<Vec<u64>>, String> {
        // The first execution brings code and data into the caches.
        self.program.run();
        let mut samples = Vec::with_capacity(2 * self.executions.len());
        for executions in &self.executions {
            let mut times_ns = Vec::with_capacity(executions.count);
            let mut counts = Vec::with_capacity(executions.count);
            for _ in 0..executions.count {
                // Leaves the CPU to others, so that real-time throttling never has a reason to stop the program.
                std::thread::sleep(PAUSE);
                let (time_ns, count) = execute(self.program, *executions, ticks)?;
                times_ns.push(time_ns);
                counts.push(count);
            }
            samples.extend([times_ns, counts]);
        }
        Ok(samples)
    }
}

/// Begins with the tick in phase: its first expiry is `first_ns` after the beginning of P.
fn execute(
    program: Computation,
    executions: Executions,
    ticks: &mut Ticks,
) -> Result<(u64, u64), String> {
    let begin_ns = monotonic_ns() + LEAD_NS;
    let times = Times {
        first_ns: begin_ns + executions.first_ns,
        period_ns: executions.resolution_ns,
        end_ns: begin_ns.saturating_add(executions.end_ns),
    };
    ticks.start(executions.tick, times)?;
    while monotonic_ns() < begin_ns {
        std::hint::spin_loop();
    }
    // The time begins before the first count and ends after the last. So each tick that is counted is within it, even if another thread
    // takes the CPU between two readings.
    let from_ns = monotonic_ns();
    let before = ticks.count(executions.tick);
    program.run();
    let count = ticks.count(executions.tick) - before;
    let to_ns = monotonic_ns();
    ticks.stop(executions.tick);
    Ok((to_ns - from_ns, count))
}

/// Below the process's main thread, which sleeps meanwhile, and far below the tick.
pub(super) const PROGRAM_PRIORITY: u8 = 40;
/// Above everything that the laboratory runs.
pub(super) const TICK_PRIORITY: u8 = 90;
/// For starting the timer, before P begins.
const LEAD_NS: u64 = 200_000;
/// With P of about 10 ms: below nine tenths of the CPU.
pub(super) const PAUSE: Duration = Duration::from_micros(1_200);
/// Some ten seconds.
const EXECUTIONS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use super::super::PROGRAM_NS;
    use super::super::equations::ticks_in;
    use super::super::tick::tests::COUNT;
    use super::*;
    use crate::processes::probe::Question as _;

    fn question(count: usize) -> Question {
        let executions = |tick| Executions::of(tick, 1_000_000, count);
        Question {
            program: Computation::lasting(3_500_000),
            cpu: rtorb_os::sched::current_affinity().last().copied(),
            real_time: false,
            executions: Tick::ALL.map(executions).to_vec(),
        }
    }

    #[test]
    fn each_configuration_is_answered_by_times_and_counts_of_ticks() {
        let _alone = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = question(2).answer().unwrap();
        assert_eq!(answer.samples.len(), 4);
        assert!(answer.samples.iter().all(|samples| samples.len() == 2));
        for times_and_counts in answer.samples.chunks_exact(2) {
            let [times_ns, counts] = times_and_counts else {
                unreachable!("two at a time");
            };
            for (time_ns, count) in times_ns.iter().zip(counts) {
                // However long another thread kept the CPU: there are no more ticks than the time has room for.
                assert!(*count <= time_ns / 1_000_000 + 1, "{count} in {time_ns}");
            }
        }
        let names: Vec<_> = answer.scheduling.iter().map(|kind| &kind.process).collect();
        assert!(
            names.iter().any(|name| name.contains("program")),
            "{names:?}"
        );
    }

    #[test]
    fn a_tick_falls_into_the_program_at_every_resolution_and_none_where_e_is_measured() {
        let ticks = |executions: Executions| {
            let Executions {
                first_ns,
                resolution_ns,
                ..
            } = executions;
            ticks_in(PROGRAM_NS as f64, first_ns, resolution_ns)
        };
        for tick in Tick::ALL {
            let without = Executions::without_ticks(tick, 1);
            assert_eq!(without.of_cell(), (None, 100_000_000));
            assert_eq!(ticks(without), 0);
            for (resolution_ns, expected) in [
                (100_000, 105),
                (5_000_000, 2),
                (10_000_000, 1),
                (20_000_000, 1),
                (100_000_000, 1),
            ] {
                let executions = Executions::of(tick, resolution_ns, 1);
                assert_eq!(ticks(executions), expected, "{executions:?}");
                assert_eq!(executions.of_cell(), (Some(tick), resolution_ns));
            }
        }
    }

    #[test]
    fn too_much_at_once_is_refused() {
        assert!(question(501).answer().unwrap_err().contains("too many"));
    }
}

//! A thread on each CPU that runs only while nobody else wants the CPU: it keeps it awake, and knows when it was idle.

use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use serde::{Deserialize, Serialize};

use super::component::work::STEP_NS_MAX;
use crate::processes::gaps::{Gap, Gaps};
use crate::processes::questions::{self, Reply};

/// The process.
#[derive(Debug)]
pub(crate) struct Watchers {
    room: usize,
    cpus: Vec<usize>,
    threads: Vec<JoinHandle<Option<Option<Watched>>>>,
}

/// What the process is asked.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum WatchersQuestion {
    /// To look until that time, in ns of CLOCK_MONOTONIC.
    Start(u64),
    /// What was seen: a [`WatchedCpu`] and a series for each CPU.
    Finish,
}

/// What the process says of a CPU. In the series behind it are its times, and two numbers for each gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchedCpu {
    cpu: usize,
    beyond_room: u64,
}

/// What a CPU did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// From when on it was looked at.
    pub(crate) begin_ns: u64,
    /// Until when.
    pub(crate) end_ns: u64,
    /// When its watcher did not run, in order.
    pub(crate) gaps: Vec<Gap>,
    /// Gaps that had no room: from the last one with room on, nothing is known.
    pub(crate) beyond_room: u64,
}

impl Watchers {
    /// For these CPUs, with room for so many gaps of each.
    pub(crate) fn new(room: usize, cpus: Vec<usize>) -> Self {
        Self {
            room: room.min(GAPS_MAX),
            cpus,
            threads: Vec::new(),
        }
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub(crate) fn serve(mut self) -> Result<(), String> {
        questions::serve(|question| self.answer(question))
    }

    fn answer(&mut self, question: WatchersQuestion) -> Result<Reply<Vec<WatchedCpu>>, String> {
        match question {
            WatchersQuestion::Start(end_ns) => self.start(end_ns).map(|()| Reply::default()),
            WatchersQuestion::Finish => Ok(self.finish()),
        }
    }

    fn start(&mut self, end_ns: u64) -> Result<(), String> {
        for cpu in &self.cpus {
            let config = ThreadConfig {
                affinity: vec![*cpu],
                ..ThreadConfig::default()
            };
            let gaps = Gaps::with_room(STEP_NS_MAX, self.room);
            // The thread itself becomes idle: it may then wait for its CPU for long, and those who start it must not.
            let thread = spawn("watcher", &config, move || {
                let idle = apply_policy(SchedPolicy::Idle);
                idle.ok().map(|()| watch(gaps, end_ns))
            });
            self.threads
                .push(thread.map_err(|refused| refused.to_string())?);
        }
        Ok(())
    }

    fn finish(&mut self) -> Reply<Vec<WatchedCpu>> {
        let threads = self.threads.drain(..);
        let all = threads.map(|thread| thread.join().ok().flatten().flatten().unwrap_or_default());
        let all: Vec<Watched> = all.collect();
        let cpus = self.cpus.iter().zip(&all).map(|(cpu, watched)| WatchedCpu {
            cpu: *cpu,
            beyond_room: watched.beyond_room,
        });
        Reply {
            value: cpus.collect(),
            series: all.iter().map(Watched::numbers).collect(),
        }
    }
}

impl Watched {
    fn numbers(&self) -> Vec<u64> {
        let gaps = self.gaps.iter();
        let gaps = gaps.map(|gap| [gap.begin_ns, gap.length_ns << 1 | u64::from(gap.switched)]);
        let times = [self.begin_ns, self.end_ns];
        [times].into_iter().chain(gaps).flatten().collect()
    }
}

fn watch(mut gaps: Gaps, end_ns: u64) -> Watched {
    let begin_ns = gaps.begin();
    gaps.spin_until(end_ns);
    Watched {
        begin_ns,
        end_ns: monotonic_ns(),
        gaps: gaps.kept().to_vec(),
        beyond_room: gaps.beyond_room(),
    }
}

/// Puts the answer together: CPUs and what they did.
///
/// # Errors
/// That a CPU has no times.
pub(crate) fn read(reply: Reply<Vec<WatchedCpu>>) -> Result<Vec<(usize, Watched)>, String> {
    let each = reply.value.iter().zip(&reply.series);
    let each = each.map(|(WatchedCpu { cpu, beyond_room }, numbers)| {
        let (pairs, _) = numbers.as_chunks::<2>();
        let ([begin_ns, end_ns], gaps) = pairs
            .split_first()
            .ok_or_else(|| format!("CPU {cpu} has no times"))?;
        let gaps = gaps.iter().map(|[begin_ns, length]| Gap {
            begin_ns: *begin_ns,
            length_ns: length >> 1,
            switched: length & 1 == 1,
        });
        let watched = Watched {
            begin_ns: *begin_ns,
            end_ns: *end_ns,
            gaps: gaps.collect(),
            beyond_room: *beyond_room,
        };
        Ok((*cpu, watched))
    });
    each.collect()
}

/// Of a CPU: twenty-four mebibytes.
const GAPS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_watched_is_read_back() {
        let cpu = *rtorb_os::sched::current_affinity().last().unwrap();
        let mut watchers = Watchers::new(1_000, vec![cpu]);
        let end_ns = monotonic_ns() + 5_000_000;
        watchers.answer(WatchersQuestion::Start(end_ns)).unwrap();
        let reply = watchers.answer(WatchersQuestion::Finish).unwrap();
        let mut without = reply.clone();
        without.series[0].clear();
        assert!(super::read(without).is_err());
        let read = super::read(reply).unwrap();
        let [(found, watched)] = &read[..] else {
            panic!("{read:?}")
        };
        assert_eq!(*found, cpu);
        assert!(watched.begin_ns < watched.end_ns && watched.end_ns >= end_ns);
        let mut pairs = watched.gaps.windows(2);
        assert!(pairs.all(|pair| pair[0].end_ns() <= pair[1].begin_ns));
    }
}

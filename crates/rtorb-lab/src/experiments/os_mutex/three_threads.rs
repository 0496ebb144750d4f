//! One round: three threads of different priority on one CPU, and a mutex.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use rtorb_host::placement::obtained_here;
use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::sync::{CeilingMutex, Mutex};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rtorb_results::ObtainedScheduling;
use strum::EnumString;

/// Which mutex: a level of the factor `mutex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Kind {
    /// `rtorb_os::sync::Mutex`.
    Inheritance,
    /// `rtorb::rt::RtMutex`, RTCORBA's.
    RtCorba,
    /// `rtorb_os::sync::CeilingMutex`.
    Ceiling,
    /// `std::sync::Mutex`, a futex without inheritance.
    Plain,
}

/// What was seen in a round, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wait {
    /// From when low let high go, holding the mutex, until high held it.
    pub(super) waited_ns: u64,
    /// Low's processor time from when it let high go until it gave the mutex back.
    pub(super) section_ns: u64,
    /// From when low let high go until it ran, when it waited for nothing.
    pub(super) switch_ns: u64,
}

/// A round, and the scheduling that each of its threads had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) wait: Wait,
    pub(super) scheduling: Vec<ObtainedScheduling>,
}

/// Runs one round on this CPU.
///
/// # Errors
/// What the host or the ORB refused.
pub(super) fn run(kind: Kind, cpu: usize) -> Result<Round, String> {
    match kind {
        Kind::Inheritance => {
            let mutex = Mutex::new(());
            round(cpu, move |within| {
                let held = mutex.lock();
                within();
                drop(held);
            })
        }
        Kind::RtCorba => {
            let orb = rtorb::Orb::builder()
                .build()
                .map_err(|error| error.to_string())?;
            let mutex = orb.rt_orb().create_mutex(());
            round(cpu, move |within| {
                let held = mutex.lock();
                within();
                drop(held);
            })
        }
        Kind::Ceiling => {
            let mutex = CeilingMutex::new(HIGH, ());
            round(cpu, move |within| {
                let held = mutex
                    .lock()
                    .expect("nobody is above the ceiling, and SCHED_FIFO was granted");
                within();
                drop(held);
            })
        }
        Kind::Plain => {
            let mutex = std::sync::Mutex::new(());
            round(cpu, move |within| {
                let held = mutex.lock();
                within();
                drop(held);
            })
        }
    }
}

fn round(cpu: usize, locked: impl Fn(&dyn Fn()) + Send + Sync + 'static) -> Result<Round, String> {
    let locked = Arc::new(locked);
    let seen = Arc::new(Seen::default());
    let (high_may_go, let_high_go) = io::pipe().map_err(|error| error.to_string())?;
    let (medium_may_go, let_medium_go) = io::pipe().map_err(|error| error.to_string())?;
    let high = {
        let (locked, seen) = (Arc::clone(&locked), Arc::clone(&seen));
        fifo("high", HIGH, cpu, move || {
            wait_for_turn(&high_may_go);
            Seen::now(&seen.high_ran);
            wait_for_turn(&high_may_go);
            locked(&|| Seen::now(&seen.high_has));
        })?
    };
    let medium = {
        let seen = Arc::clone(&seen);
        fifo("medium", MEDIUM, cpu, move || {
            wait_for_turn(&medium_may_go);
            let begin_ns = thread_cpu_ns();
            while seen.high_has.load(SeqCst) == 0 && thread_cpu_ns() - begin_ns < SPIN_NS {
                std::hint::spin_loop();
            }
        })?
    };
    let low = {
        let seen = Arc::clone(&seen);
        fifo("low", LOW, cpu, move || {
            Seen::now(&seen.before_switch);
            give_turn(&let_high_go);
            locked(&|| {
                let begin_ns = thread_cpu_ns();
                Seen::now(&seen.high_wants);
                give_turn(&let_high_go);
                give_turn(&let_medium_go);
                while thread_cpu_ns() - begin_ns < SECTION_NS {
                    std::hint::spin_loop();
                }
                seen.section_ns.store(thread_cpu_ns() - begin_ns, SeqCst);
            });
        })?
    };
    let mut scheduling = Vec::new();
    for thread in [low, medium, high] {
        let ended = thread.join().ok().flatten();
        let had = ended.ok_or("a thread panicked")?;
        scheduling.push(had.ok_or("the scheduling of a thread cannot be read")?);
    }
    Ok(Round {
        wait: seen.wait(),
        scheduling,
    })
}

/// Moments and times, written by the three threads without a lock.
#[derive(Debug, Default)]
struct Seen {
    before_switch: AtomicU64,
    high_ran: AtomicU64,
    high_wants: AtomicU64,
    high_has: AtomicU64,
    section_ns: AtomicU64,
}

impl Seen {
    fn now(moment: &AtomicU64) {
        moment.store(monotonic_ns(), SeqCst);
    }

    fn wait(&self) -> Wait {
        let between =
            |from: &AtomicU64, to: &AtomicU64| to.load(SeqCst).saturating_sub(from.load(SeqCst));
        Wait {
            waited_ns: between(&self.high_wants, &self.high_has),
            section_ns: self.section_ns.load(SeqCst),
            switch_ns: between(&self.before_switch, &self.high_ran),
        }
    }
}

/// Starts a thread, which answers with the scheduling that it had before its work.
fn fifo(
    name: &'static str,
    priority: u8,
    cpu: usize,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<Option<Option<ObtainedScheduling>>>, String> {
    let config = ThreadConfig {
        policy: Some(SchedPolicy::Fifo(priority)),
        affinity: vec![cpu],
        ..ThreadConfig::default()
    };
    let work = move || {
        let had = obtained_here(name);
        work();
        had
    };
    spawn(name, &config, work).map_err(|refused| refused.to_string())
}

/// Sleeps until somebody gives a turn; also when nobody can any more.
fn wait_for_turn(mut turns: &PipeReader) {
    let _ = turns.read(&mut [0]);
}

fn give_turn(mut turns: &PipeWriter) {
    // An octet fits into an empty pipe, and the reader waits for it.
    let _ = turns.write(&[0]);
}

const LOW: u8 = 10;
const MEDIUM: u8 = 20;
const HIGH: u8 = 30;
/// Of processor time.
pub(super) const SECTION_NS: u64 = 500_000;
/// Long beside the critical section, and far below what real-time throttling stops.
pub(super) const SPIN_NS: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says of each thread, not what was asked for.
    #[test]
    fn a_round_tells_the_scheduling_of_its_threads() {
        let cpu = rtorb_os::sched::current_affinity()[0];
        match run(Kind::Inheritance, cpu) {
            Ok(round) => {
                let had = round.scheduling.iter();
                let had: Vec<(&str, u32)> = had
                    .map(|one| (one.process.as_str(), one.priority))
                    .collect();
                assert_eq!(had, [("low", 10), ("medium", 20), ("high", 30)]);
                let all = |one: &ObtainedScheduling| one.real_time && one.cpus == cpu.to_string();
                assert!(round.scheduling.iter().all(all));
                assert!(round.wait.section_ns >= SECTION_NS);
            }
            Err(refused) => assert!(refused.contains("SCHED_FIFO"), "{refused}"),
        }
    }
}

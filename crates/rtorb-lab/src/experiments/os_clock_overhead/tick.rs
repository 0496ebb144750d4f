//! The ticks: real timers of the kernel that interrupt the program at the given resolution, on its CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rtorb_instruments::signal_timer::{self, SignalTimer};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use serde::{Deserialize, Serialize};

/// What a tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tick {
    /// A signal of a periodic POSIX timer, handled by the program's own thread: an interrupt and the way to the handler and
    /// back. P3's "signal generated from the system clock".
    Signal,
    /// A thread of higher priority wakes at the timer's expiry and sleeps again: an interrupt and two context switches. What
    /// a periodic task costs that has nothing to do.
    Thread,
}

impl Tick {
    pub(super) const ALL: [Self; 2] = [Self::Signal, Self::Thread];

    /// The value of the label `tick`.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Thread => "thread",
        }
    }
}

/// When a timer expires, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Absolute.
    pub(super) first_ns: u64,
    pub(super) period_ns: u64,
    /// Absolute: then a thread ticks no more, also if it is late for every tick.
    pub(super) end_ns: u64,
}

/// Both kinds, ready to be started by the thread that they shall interrupt.
pub(super) struct Ticks {
    signal: SignalTimer,
    thread: TickThread,
}

impl Ticks {
    /// For the calling thread, with one that was started.
    pub(super) fn for_this_thread(thread: TickThread) -> Result<Self, String> {
        let signal = SignalTimer::for_this_thread().map_err(|refused| refused.to_string())?;
        Ok(Self { signal, thread })
    }

    pub(super) fn start(&mut self, tick: Tick, times: Times) -> Result<(), String> {
        match tick {
            Tick::Signal => {
                let started = self.signal.start(times.first_ns, times.period_ns);
                started.map_err(|refused| refused.to_string())
            }
            Tick::Thread => {
                self.thread.shared.begin(times);
                Ok(())
            }
        }
    }

    pub(super) fn stop(&mut self, tick: Tick) {
        match tick {
            Tick::Signal => self.signal.stop(),
            Tick::Thread => self.thread.shared.tell(IDLE),
        }
    }

    /// How many there were so far.
    pub(super) fn count(&self, tick: Tick) -> u64 {
        match tick {
            Tick::Signal => signal_timer::handled(),
            Tick::Thread => self.thread.shared.ticks.load(Ordering::Relaxed),
        }
    }
}

/// A thread that only wakes and sleeps. It waits on a futex with an absolute timeout: the same timer as that of
/// clock_nanosleep(2), and it can be ended before a coarse tick is due.
pub(super) struct TickThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Option<()>>>,
}

impl TickThread {
    /// It runs as `config` says.
    pub(super) fn start(config: &ThreadConfig) -> Result<Self, String> {
        let shared = Arc::new(Shared::default());
        let ticking = Arc::clone(&shared);
        let thread = spawn("tick", config, move || ticking.tick_until_over());
        Ok(Self {
            thread: Some(thread.map_err(|refused| refused.to_string())?),
            shared,
        })
    }
}

impl Drop for TickThread {
    fn drop(&mut self) {
        self.shared.tell(OVER);
        if let Some(thread) = self.thread.take() {
            // It has nothing that could panic.
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// One of [`IDLE`], [`RUNNING`], [`OVER`].
    state: AtomicU32,
    next_ns: AtomicU64,
    period_ns: AtomicU64,
    end_ns: AtomicU64,
    ticks: AtomicU64,
}

impl Shared {
    fn begin(&self, times: Times) {
        self.next_ns.store(times.first_ns, Ordering::Relaxed);
        self.period_ns.store(times.period_ns, Ordering::Relaxed);
        self.end_ns.store(times.end_ns, Ordering::Relaxed);
        self.tell(RUNNING);
    }

    fn tell(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        futex::wake(&self.state, 1);
    }

    fn tick_until_over(&self) {
        loop {
            match self.state.load(Ordering::Acquire) {
                RUNNING => self.tick(),
                IDLE => {
                    futex::wait(&self.state, IDLE, None);
                }
                _ => return,
            }
        }
    }

    fn tick(&self) {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        // A wait also ends when it is interrupted or stopped: that is no tick.
        let timed_out = !futex::wait(&self.state, RUNNING, Some(next_ns));
        let now_ns = monotonic_ns();
        if now_ns >= self.end_ns.load(Ordering::Relaxed) {
            // It fails when the program has ended meanwhile and said so.
            let (running, relaxed) = (RUNNING, Ordering::Relaxed);
            let _ = self
                .state
                .compare_exchange(running, IDLE, Ordering::AcqRel, relaxed);
        } else if timed_out && now_ns >= next_ns {
            self.ticks.fetch_add(1, Ordering::Relaxed);
            let period_ns = self.period_ns.load(Ordering::Relaxed);
            self.next_ns.store(next_ns + period_ns, Ordering::Relaxed);
        }
    }
}

const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const OVER: u32 = 2;

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// Signals are counted for the whole process: a test that counts them has it for itself.
    pub(in super::super) static COUNT: Mutex<()> = Mutex::new(());

    fn ticks() -> Ticks {
        let thread = TickThread::start(&ThreadConfig::default()).unwrap();
        Ticks::for_this_thread(thread).unwrap()
    }

    #[test]
    fn both_kinds_tick_and_stop() {
        let _alone = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ticks = ticks();
        for tick in Tick::ALL {
            let before = ticks.count(tick);
            let begin_ns = monotonic_ns();
            let times = Times {
                first_ns: begin_ns + 1_000_000,
                period_ns: 1_000_000,
                end_ns: u64::MAX,
            };
            ticks.start(tick, times).unwrap();
            while ticks.count(tick) - before < 3 && monotonic_ns() - begin_ns < 60_000_000_000 {}
            ticks.stop(tick);
            assert!(ticks.count(tick) - before >= 3, "{tick:?}");
            assert!(monotonic_ns() - begin_ns >= 3_000_000, "{tick:?}");
        }
    }

    #[test]
    fn a_thread_that_is_late_for_every_tick_stops_at_the_end() {
        let mut ticks = ticks();
        let end_ns = monotonic_ns() + 5_000_000;
        let times = Times {
            first_ns: 1,
            period_ns: 1,
            end_ns,
        };
        ticks.start(Tick::Thread, times).unwrap();
        let is_running = || ticks.thread.shared.state.load(Ordering::Acquire) == RUNNING;
        while is_running() && monotonic_ns() < end_ns + 60_000_000_000 {
            std::thread::yield_now();
        }
        assert!(!is_running() && monotonic_ns() >= end_ns);
    }

    #[test]
    fn a_coarse_tick_is_stopped_before_it_is_due() {
        let begin_ns = monotonic_ns();
        let mut ticks = ticks();
        let times = Times {
            first_ns: begin_ns + 60_000_000_000,
            period_ns: 60_000_000_000,
            end_ns: u64::MAX,
        };
        ticks.start(Tick::Thread, times).unwrap();
        ticks.stop(Tick::Thread);
        drop(ticks);
        assert!(monotonic_ns() - begin_ns < 30_000_000_000);
    }
}

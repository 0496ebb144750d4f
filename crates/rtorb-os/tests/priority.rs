//! The effect of the locks on priorities, as an order of events on one CPU. No test here measures time.
//!
//! Each needs SCHED_FIFO; where the host refuses it, the test prints why and ends. No thread spins longer than [`SPIN_NS_MAX`],
//! far below what the kernel's real-time throttling would stop (sched_rt_runtime_us, 950 of 1000 ms).

use rtorb_os::clock::thread_cpu_ns;
use rtorb_os::futex;
use rtorb_os::sched::{SchedPolicy, allowed, current_affinity};
use rtorb_os::sync::{CeilingMutex, Condvar, Mutex};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const LOW: u8 = 10;
const MEDIUM: u8 = 20;
const HIGH: u8 = 30;
const SPIN_NS_MAX: u64 = 50_000_000;

#[test]
fn a_spinning_medium_thread_does_not_keep_the_high_one_from_a_mutex_with_inheritance() {
    if real_time_is_refused() {
        return;
    }
    let mutex = Mutex::new(());
    let order = order_of_three(move |within| {
        let held = mutex.lock();
        within();
        drop(held);
    });
    let expected = ["high wants", "low releases", "high has", "medium spun"];
    assert_eq!(order, expected);
}

#[test]
fn a_spinning_medium_thread_keeps_the_high_one_from_a_plain_mutex() {
    if real_time_is_refused() {
        return;
    }
    let mutex = std::sync::Mutex::new(());
    let order = order_of_three(move |within| {
        let held = mutex.lock().expect("no panic");
        within();
        drop(held);
    });
    let expected = ["high wants", "medium spun", "low releases", "high has"];
    assert_eq!(order, expected);
}

#[test]
fn under_a_ceiling_the_high_thread_finds_the_mutex_free() {
    if real_time_is_refused() {
        return;
    }
    let mutex = CeilingMutex::new(HIGH, ());
    let order = order_of_three(move |within| {
        let held = mutex.lock().expect("below the ceiling");
        within();
        drop(held);
    });
    // It wanted the mutex only when the low thread was done, so it did not wait.
    let expected = ["low releases", "high wants", "high has", "medium spun"];
    assert_eq!(order, expected);
}

#[test]
fn notified_threads_get_the_mutex_in_order_of_priority() {
    if real_time_is_refused() {
        return;
    }
    for all_at_once in [true, false] {
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let waiters: Vec<_> = [MEDIUM, LOW, HIGH]
            .into_iter()
            .map(|priority| {
                let state = Arc::clone(&state);
                fifo("waiter", priority, move || {
                    let (mutex, changed) = &*state;
                    let mut now = mutex.lock();
                    now.waiting += 1;
                    while now.permits == 0 {
                        changed.wait(&mut now);
                    }
                    now.permits -= 1;
                    now.woken.push(priority);
                })
            })
            .collect();
        let notifier = {
            let state = Arc::clone(&state);
            // Less urgent than all waiters, so they sleep when it runs.
            fifo("notifier", LOW - 1, move || {
                let (mutex, changed) = &*state;
                let mut now = mutex.lock();
                now.permits = 3;
                if all_at_once {
                    changed.notify_all(mutex);
                } else {
                    (0..3).for_each(|_| changed.notify_one(mutex));
                }
            })
        };
        while state.0.lock().waiting < 3 {
            std::thread::yield_now();
        }
        notifier.go();
        waiters.into_iter().for_each(Started::join);
        notifier.join();
        assert_eq!(state.0.lock().woken, [HIGH, MEDIUM, LOW]);
    }
}

#[test]
fn a_notified_thread_lends_its_priority_to_the_notifier_that_holds_the_mutex() {
    if real_time_is_refused() {
        return;
    }
    let state = Arc::new((Mutex::new(false), Condvar::new()));
    let events = Arc::new(Events::default());
    let high_has = Arc::new(AtomicBool::new(false));
    let high = {
        let (state, events, high_has) = (state.clone(), events.clone(), high_has.clone());
        fifo("high", HIGH, move || {
            let (mutex, changed) = &*state;
            let mut now = mutex.lock();
            events.add("high waits");
            while !*now {
                changed.wait(&mut now);
            }
            high_has.store(true, Ordering::SeqCst);
            events.add("high has");
        })
    };
    let medium = spinner(&events, &high_has);
    let low = {
        let (high, medium) = (high.gate.clone(), medium.gate.clone());
        fifo("low", LOW, move || {
            let (mutex, changed) = &*state;
            high.open();
            let mut now = mutex.lock();
            *now = true;
            changed.notify_one(mutex);
            medium.open();
            drop(now);
        })
    };
    low.go();
    [low, medium, high].into_iter().for_each(Started::join);
    assert_eq!(events.in_order(), ["high waits", "high has", "medium spun"]);
}

#[derive(Default)]
struct State {
    waiting: u32,
    permits: u32,
    woken: Vec<u8>,
}

/// Low holds the lock and lets first high go, which wants the lock, then medium, which wants nothing but to spin until high has
/// had it.
fn order_of_three(locked: impl Fn(&dyn Fn()) + Send + Sync + 'static) -> Vec<&'static str> {
    let locked = Arc::new(locked);
    let events = Arc::new(Events::default());
    let high_has = Arc::new(AtomicBool::new(false));
    let high = {
        let (locked, events, high_has) = (locked.clone(), events.clone(), high_has.clone());
        fifo("high", HIGH, move || {
            events.add("high wants");
            locked(&|| {
                high_has.store(true, Ordering::SeqCst);
                events.add("high has");
            });
        })
    };
    let medium = spinner(&events, &high_has);
    let low = {
        let (high, medium) = (high.gate.clone(), medium.gate.clone());
        let events = events.clone();
        fifo("low", LOW, move || {
            locked(&|| {
                high.open();
                medium.open();
                events.add("low releases");
            });
        })
    };
    low.go();
    [low, medium, high].into_iter().for_each(Started::join);
    events.in_order()
}

/// The medium thread: spins until high has had what it wants, or for [`SPIN_NS_MAX`].
fn spinner(events: &Arc<Events>, high_has: &Arc<AtomicBool>) -> Started {
    let (events, high_has) = (events.clone(), high_has.clone());
    fifo("medium", MEDIUM, move || {
        let begin_ns = thread_cpu_ns();
        while !high_has.load(Ordering::SeqCst) && thread_cpu_ns() - begin_ns < SPIN_NS_MAX {
            core::hint::spin_loop();
        }
        events.add("medium spun");
    })
}

/// What happened, in order; written without a lock, which would itself change the order.
#[derive(Default)]
struct Events {
    next: AtomicU32,
    seen: [std::sync::OnceLock<&'static str>; 8],
}

impl Events {
    fn add(&self, event: &'static str) {
        let place = self.next.fetch_add(1, Ordering::SeqCst) as usize;
        self.seen[place].set(event).expect("each place once");
    }

    fn in_order(&self) -> Vec<&'static str> {
        self.seen
            .iter()
            .filter_map(|event| event.get().copied())
            .collect()
    }
}

/// A thread that sleeps until its gate opens.
struct Started {
    gate: Arc<Gate>,
    thread: JoinHandle<Option<()>>,
}

impl Started {
    fn go(&self) {
        self.gate.open();
    }

    fn join(self) {
        self.thread.join().expect("no panic").expect("it was begun");
    }
}

#[derive(Default)]
struct Gate(AtomicU32);

impl Gate {
    fn open(&self) {
        self.0.store(1, Ordering::SeqCst);
        futex::wake(&self.0, 1);
    }

    fn pass(&self) {
        while self.0.load(Ordering::SeqCst) == 0 {
            futex::wait(&self.0, 0, None);
        }
    }
}

/// A thread at this priority on the one CPU of all tests; `waiter`s go at once.
fn fifo(name: &str, priority: u8, work: impl FnOnce() + Send + 'static) -> Started {
    let gate = Arc::new(Gate::default());
    if name == "waiter" {
        gate.open();
    }
    let config = ThreadConfig {
        policy: Some(SchedPolicy::Fifo(priority)),
        affinity: current_affinity().last().copied().into_iter().collect(),
        ..ThreadConfig::default()
    };
    let thread = {
        let gate = gate.clone();
        spawn(name, &config, move || {
            gate.pass();
            work();
        })
    };
    Started {
        gate,
        thread: thread.expect("the host was asked before"),
    }
}

fn real_time_is_refused() -> bool {
    let refused = allowed(SchedPolicy::Fifo(HIGH)).err();
    if let Some(refused) = refused {
        println!("skipped: {refused}");
    }
    refused.is_some()
}

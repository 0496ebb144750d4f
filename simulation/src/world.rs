//! The simulated world: threads, time and network of one process, and the one lock that guards them.
//!
//! One thread of the process runs at a time, and only it touches the world. So the lock is always free, and makes no system call.

pub(crate) mod bounds;
pub(crate) mod disk;
pub(crate) mod epolls;
pub(crate) mod faults;
pub(crate) mod files;
pub(crate) mod futexes;
pub(crate) mod processes;
pub(crate) mod streams;
pub(crate) mod tasks;
mod turns;

pub(crate) use turns::{block, burn, end_task, give_way, now_ns, observe, point, settle};

use crate::calls::baton::Baton;
use crate::random::Random;
use bounds::Counted;
use disk::Disk;
use faults::Faults;
use files::{FileId, Files};
use futexes::Futexes;
use processes::{Kill, ProcessId};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tasks::{Choice, Policy, State, Task, TaskId, Tasks, Ticket, Woken};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) core: Core,
    pub(crate) futexes: Futexes,
    pub(crate) files: Files,
    pub(crate) disk: Disk,
}

/// What all parts of the world use.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) now_ns: u64,
    pub(crate) tasks: Tasks,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    due: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events: u64,
    pub(crate) steps: u64,
    pub(crate) hash: u64,
    /// One step takes at most so long.
    step_ns_max: u64,
    pub(crate) observed: Observed,
    pub(crate) counted: Counted,
}

/// What systems ask for beyond what the ORB can see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) watched_rank: u32,
    /// The CPU time that less urgent threads had.
    pub(crate) below_ns: u64,
}

/// What happens at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Wake(u64, TaskId),
    Timer {
        file: FileId,
        set: u64,
    },
    Established {
        file: FileId,
    },
    Arrival {
        to: FileId,
        from: FileId,
        bytes: Vec<u8>,
    },
    End {
        to: FileId,
    },
    Reset {
        to: FileId,
    },
    Kill {
        process: ProcessId,
        how: Kill,
    },
}

/// More steps than a seed needs: a world that does more spins.
const STEPS_MAX: u64 = 2_000_000;

/// The monotonic clock at the start.
const START_NS: u64 = 1_000_000_000_000;

static WORLD: Mutex<Option<World>> = Mutex::new(None);

thread_local! {
    static IS_TASK: Cell<bool> = const { Cell::new(false) };
}

/// True if the run prints what its threads do.
static TRACES: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_tracing() {
    TRACES.store(true, Ordering::Relaxed);
}

pub(crate) fn is_traced() -> bool {
    TRACES.load(Ordering::Relaxed)
}

/// True on a thread of the world, except while it reports.
pub(crate) fn is_simulated() -> bool {
    IS_TASK.get()
}

pub(crate) fn set_simulated(is_task: bool) {
    IS_TASK.set(is_task);
}

impl World {
    pub(crate) fn new(mut random: Random, faults: Faults) -> Self {
        let choice = Choice {
            cpus: random.choose(&[1, 1, 2, 4]),
            change_one_in: random.choose(&[0, 2, 8, 40, 200, 1000]),
            turn_steps: 2000,
        };
        let tasks = Tasks::new(choice, random.split());
        Self {
            core: Core {
                now_ns: START_NS,
                tasks,
                step_ns_max: random.choose(&[1, 200, 1000]),
                random: random.split(),
                faults,
                due: BinaryHeap::new(),
                events: 0,
                steps: 0,
                hash: 0xcbf2_9ce4_8422_2325,
                observed: Observed::default(),
                counted: Counted::default(),
            },
            futexes: Futexes::default(),
            files: Files::default(),
            disk: Disk::default(),
        }
    }

    /// Makes this the world of the process; returns the baton of its first thread.
    pub(crate) fn begin(mut self) -> Arc<Baton> {
        let (_, baton) = self.core.tasks.add(Policy::OTHER);
        *lock() = Some(self);
        baton
    }

    /// One step of the running thread.
    fn step(&mut self) {
        let cost_ns = 1 + self.core.random.below(self.core.step_ns_max);
        self.spend(cost_ns);
        self.core.tasks.step();
    }

    /// Has the running thread use the CPU for that time.
    pub(crate) fn spend(&mut self, cost_ns: u64) {
        self.core.count_step();
        self.core.check_invariants(self.files.accepted);
        self.core.now_ns += cost_ns;
        let task = self.core.tasks.current();
        task.cpu_ns += cost_ns;
        if task.rank() < self.core.observed.watched_rank {
            self.core.observed.below_ns += cost_ns;
        }
        self.fire();
    }

    /// The thread that runs next. If all wait, time passes.
    fn next(&mut self) -> TaskId {
        loop {
            if let Some(next) = self.core.tasks.choose() {
                if next != self.core.tasks.current {
                    self.core.mix(next as u64 ^ self.core.now_ns << 8);
                }
                self.core.tasks.current = next;
                return next;
            }
            let Some(Reverse((at_ns, _, _))) = self.core.due.peek() else {
                self.core
                    .fail("deadlock: all threads wait, and no timer is set");
            };
            self.core.now_ns = self.core.now_ns.max(*at_ns);
            self.core.count_step();
            self.fire();
        }
    }

    fn fire(&mut self) {
        while let Some(Reverse((at_ns, _, _))) = self.core.due.peek()
            && *at_ns <= self.core.now_ns
        {
            let Some(Reverse((_, _, event))) = self.core.due.pop() else {
                return;
            };
            match event {
                Event::Wake(number, task) => {
                    self.core.tasks.wake(Ticket { task, number }, Woken::ByTime);
                }
                Event::Kill { process, how } => self.kill(process, how),
                event => self.files.happen(&mut self.core, event),
            }
        }
    }

    fn baton(&self, task: TaskId) -> Arc<Baton> {
        Arc::clone(&self.core.tasks.all[task].baton)
    }
}

impl Core {
    /// Has something happen at a time, and not before what was due then.
    pub(crate) fn at(&mut self, at_ns: u64, event: Event) {
        self.events += 1;
        self.due.push(Reverse((at_ns, self.events, event)));
    }

    pub(crate) fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23);
    }

    /// Prints what the running thread does, if the run is traced.
    pub(crate) fn trace(&self, what: impl FnOnce() -> String) {
        if TRACES.load(Ordering::Relaxed) {
            let (task, now_ns) = (self.tasks.current, self.now_ns - START_NS);
            let name = self.tasks.all.get(task).map_or("", |task| &task.name);
            eprintln!("{now_ns:>12} {task:>2} {name:<16} {}", what());
        }
    }

    fn count_step(&mut self) {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            self.fail("livelock: more steps than a seed needs");
        }
    }

    /// Ends the process: the seed fails.
    pub(crate) fn fail(&self, why: &str) -> ! {
        set_simulated(false);
        eprintln!(
            "{why}, at {} ns, step {}",
            self.now_ns - START_NS,
            self.steps
        );
        for (number, task) in self.tasks.all.iter().enumerate() {
            let Task {
                state,
                policy,
                name,
                ..
            } = task;
            if *state != State::Ended {
                let what = if *state == State::Waiting {
                    task.waits_for
                } else {
                    ""
                };
                let current = if number == self.tasks.current {
                    "*"
                } else {
                    " "
                };
                eprintln!("{current}{number:3} {name} {state:?} {what} {policy:?}");
            }
        }
        crate::calls::threads::exit_at_once(1)
    }
}

fn lock() -> MutexGuard<'static, Option<World>> {
    match WORLD.try_lock() {
        Ok(world) => world,
        Err(_) => {
            set_simulated(false);
            eprintln!("the world is in use: a call of it came from within, or it panicked");
            crate::calls::threads::exit_at_once(3)
        }
    }
}

/// Does something with the world. `act` must make no call that this program replaces.
pub(crate) fn with<T>(act: impl FnOnce(&mut World) -> T) -> T {
    act(lock().as_mut().expect("it has begun"))
}

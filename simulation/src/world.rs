//! The simulated world: threads, time and network of one process, and the one lock that guards them.
//!
//! One thread of the process runs at a time, and only it touches the world. So the lock is always free, and makes no system call.

pub(crate) mod epolls;
pub(crate) mod faults;
pub(crate) mod files;
pub(crate) mod futexes;
pub(crate) mod streams;
pub(crate) mod tasks;

use crate::calls::baton::Baton;
use crate::random::Random;
use faults::Faults;
use files::{FileId, Files};
use futexes::Futexes;
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
            change_one_in: random.choose(&[0, 8, 40, 200, 1000, 5000]),
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
            },
            futexes: Futexes::default(),
            files: Files::default(),
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

/// A point at which another thread may run first.
pub(crate) fn point() {
    switch(World::step);
}

/// The running thread lets others of its priority run.
pub(crate) fn give_way() {
    switch(|world| {
        world.core.tasks.give_way();
        world.step();
    });
}

/// Has the running thread use the CPU for that time, in small parts.
pub(crate) fn burn(time_ns: u64) {
    const PART_NS: u64 = 2_000;
    for _ in 0..time_ns.div_ceil(PART_NS) {
        switch(|world| world.spend(PART_NS));
    }
}

/// Sleeps until the ticket is called, or until a time of the monotonic clock.
pub(crate) fn block(waits_for: &'static str, ticket: Ticket, until_ns: Option<u64>) -> Woken {
    switch(|world| {
        if let Some(until_ns) = until_ns {
            let late_ns = world.core.random.below(world.core.faults.late_ns_max + 1);
            let at_ns = until_ns.max(world.core.now_ns).saturating_add(late_ns);
            world
                .core
                .at(at_ns, Event::Wake(ticket.number, ticket.task));
        }
        let task = world.core.tasks.current();
        (task.state, task.waits_for) = (State::Waiting, waits_for);
        world
            .core
            .trace(|| format!("waits for {waits_for} until {until_ns:?}"));
    });
    with(|world| world.core.tasks.current().woken)
}

/// The running thread ends, and another one runs; or none is left.
pub(crate) fn end_task() {
    let next = with(|world| {
        world.futexes.abandon(&mut world.core);
        let task = world.core.tasks.current();
        task.state = State::Ended;
        for joiner in std::mem::take(&mut task.joiners) {
            world.core.tasks.wake(joiner, Woken::ByEvent);
        }
        let is_last = world
            .core
            .tasks
            .all
            .iter()
            .all(|task| task.state == State::Ended);
        (!is_last).then(|| {
            let next = world.next();
            world.baton(next)
        })
    });
    if let Some(next) = next {
        next.pass();
    }
}

/// Changes the world, then has the thread run that is to run next, and returns when this one runs again.
fn switch(change: impl FnOnce(&mut World)) {
    let batons = with(|world| {
        let this = world.core.tasks.current;
        change(world);
        let next = world.next();
        (next != this).then(|| (world.baton(next), world.baton(this)))
    });
    if let Some((next, this)) = batons {
        next.pass();
        this.take();
    }
}

/// Virtual time that threads have to end, and descriptors to be closed, once a system has ended.
const SETTLE_NS: u64 = 5_000_000_000;

/// A process keeps one descriptor for clients that it must refuse for want of others.
const RESERVED: usize = 1;

/// Waits for the ends of all other threads, and checks that nothing is left.
pub(crate) fn settle() {
    let until_ns = with(|world| world.core.now_ns) + SETTLE_NS;
    let others_run = || {
        with(|world| {
            let this = world.core.tasks.current;
            let mut tasks = world.core.tasks.all.iter().enumerate();
            tasks.any(|(number, task)| number != this && task.state != State::Ended)
        })
    };
    while others_run() && with(|world| world.core.now_ns) < until_ns {
        crate::calls::sleep_until(with(|world| world.core.now_ns) + SETTLE_NS / 50);
    }
    with(|world| {
        if world
            .core
            .tasks
            .all
            .iter()
            .filter(|task| task.state != State::Ended)
            .count()
            > 1
        {
            let why = format!("threads are left, and {}", world.files.list());
            world.core.fail(&why);
        }
        if world.files.count() > RESERVED {
            let why = format!("descriptors are left: {}", world.files.list());
            world.core.fail(&why);
        }
        let now_ns = world.core.now_ns;
        world.core.mix(now_ns);
    });
}

/// Begins to count the CPU time of threads that are less urgent than this rank.
pub(crate) fn observe(watched_rank: u32) {
    let below_ns = 0;
    with(|world| {
        world.core.observed = Observed {
            watched_rank,
            below_ns,
        }
    });
}

/// The virtual time.
pub(crate) fn now_ns() -> u64 {
    with(|world| world.core.now_ns)
}

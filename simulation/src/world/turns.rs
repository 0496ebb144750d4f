//! How threads take turns, and how a run ends.

use super::futexes::OWNER_DIED;
use super::tasks::{State, Ticket, Woken};
use super::{Event, Observed, World, with};

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
        let this = world.core.tasks.current;
        world
            .futexes
            .abandon(&mut world.core, OWNER_DIED, |owner| owner == this);
        world.core.tasks.end(this);
        world.core.tasks.others_run().then(|| {
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
    while with(|world| world.core.tasks.others_run()) && now_ns() < until_ns {
        crate::calls::sleep_until(now_ns() + SETTLE_NS / 50);
    }
    with(|world| {
        if world.core.tasks.others_run() {
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

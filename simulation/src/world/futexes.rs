//! Futexes, and those that pass priorities on: futex(2), `Documentation/locking/futex-requeue-pi.rst` of Linux.

use super::Core;
use super::tasks::{State, TaskId, Tasks, Ticket, Woken};
use crate::calls::word::Word;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Futexes {
    sleepers: BTreeMap<Word, Vec<Sleeper>>,
    locks: BTreeMap<Word, Lock>,
}

#[derive(Clone, Copy, Debug)]
struct Sleeper {
    ticket: Ticket,
    bits: u32,
    /// The lock that it gets with its notification.
    lock: Option<Word>,
}

/// A lock for which threads wait.
#[derive(Debug)]
struct Lock {
    owner: TaskId,
    waiters: Vec<Ticket>,
}

/// Whether a thread has a lock, or must wait for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Locking {
    Held,
    Waits(Ticket),
}

const WAITERS: u32 = 1 << 31;
pub(super) const OWNER_DIED: u32 = 1 << 30;
const NUMBER: u32 = OWNER_DIED - 1;

impl Futexes {
    /// Queues the current thread if the word has that value.
    pub(crate) fn wait(
        &mut self,
        core: &mut Core,
        word: Word,
        expected: u32,
        bits: u32,
        lock: Option<Word>,
    ) -> Result<Ticket, i32> {
        if word.load() != expected {
            return Err(libc::EAGAIN);
        }
        let ticket = core.tasks.ticket();
        let sleepers = self.sleepers.entry(word).or_default();
        sleepers.push(Sleeper { ticket, bits, lock });
        Ok(ticket)
    }

    /// Forgets a thread that woke by itself.
    pub(crate) fn give_up(&mut self, core: &mut Core, ticket: Ticket) {
        self.sleepers.retain(|_, sleepers| {
            sleepers.retain(|it| it.ticket != ticket);
            !sleepers.is_empty()
        });
        for lock in self.locks.values_mut() {
            lock.waiters.retain(|it| *it != ticket);
        }
        self.inherit(&mut core.tasks);
    }

    /// Wakes so many threads, the most urgent first.
    pub(crate) fn wake(&mut self, core: &mut Core, word: Word, count: u32, bits: u32) -> i64 {
        let mut woken = 0;
        while woken < i64::from(count)
            && let Some(sleeper) = self.take_most_urgent(&core.tasks, word, bits)
        {
            woken += i64::from(core.tasks.wake(sleeper.ticket, Woken::ByEvent));
        }
        woken
    }

    pub(crate) fn lock(&mut self, core: &mut Core, word: Word) -> Result<Locking, i32> {
        let this = core.tasks.current;
        let owner = word.load();
        if owner & NUMBER == 0 {
            word.store(number(this) | owner & (WAITERS | OWNER_DIED));
            return Ok(Locking::Held);
        }
        let number_of_owner = (owner & NUMBER).cast_signed();
        let Some(owner) = core.tasks.numbered(number_of_owner) else {
            // A process has its own copy of what is static: a kill leaves it free for others.
            if core.tasks.was_killed(number_of_owner) {
                word.store(number(this));
                return Ok(Locking::Held);
            }
            return Err(libc::ESRCH);
        };
        if owner == this || self.waits_for(owner, this) {
            return Err(libc::EDEADLK);
        }
        let ticket = core.tasks.ticket();
        self.queue(&mut core.tasks, word, owner, ticket);
        Ok(Locking::Waits(ticket))
    }

    /// Passes the lock to the most urgent thread that waits for it.
    pub(crate) fn unlock(&mut self, core: &mut Core, word: Word) -> Result<(), i32> {
        if word.load() & NUMBER != number(core.tasks.current) {
            return Err(libc::EPERM);
        }
        self.pass(core, word, 0);
        Ok(())
    }

    /// Gives the lock to one notified thread, and has others wait for it.
    pub(crate) fn requeue(
        &mut self,
        core: &mut Core,
        word: Word,
        lock: Word,
        expected: u32,
        others_max: u32,
    ) -> Result<i64, i32> {
        if word.load() != expected {
            return Err(libc::EAGAIN);
        }
        let mut moved = 0;
        while moved <= i64::from(others_max) {
            let Some(sleeper) = self.take_most_urgent(&core.tasks, word, u32::MAX) else {
                break;
            };
            if sleeper.lock != Some(lock) {
                self.sleepers.entry(word).or_default().push(sleeper);
                return Err(libc::EINVAL);
            }
            moved += 1;
            let owner = lock.load();
            if owner & NUMBER == 0 {
                lock.store(number(sleeper.ticket.task) | owner & (WAITERS | OWNER_DIED));
                core.tasks.wake(sleeper.ticket, Woken::ByEvent);
                continue;
            }
            let owner = core.tasks.numbered((owner & NUMBER).cast_signed());
            self.queue(
                &mut core.tasks,
                lock,
                owner.ok_or(libc::ESRCH)?,
                sleeper.ticket,
            );
        }
        Ok(moved)
    }

    /// Passes on what threads hold that end, with these flags.
    pub(crate) fn abandon(&mut self, core: &mut Core, flags: u32, ends: impl Fn(TaskId) -> bool) {
        let held = self.locks.iter().filter(|(_, lock)| ends(lock.owner));
        let held: Vec<_> = held.map(|(word, _)| *word).collect();
        for word in held {
            self.pass(core, word, flags);
        }
    }

    /// Gives the owners of locks the priorities of those that wait for them.
    pub(crate) fn inherit(&mut self, tasks: &mut Tasks) {
        self.locks.retain(|_, lock| {
            lock.waiters.retain(|ticket| is_queued(tasks, *ticket));
            !lock.waiters.is_empty()
        });
        tasks.all.iter_mut().for_each(|task| task.inherited = 0);
        // A chain is no longer than the number of locks.
        for _ in 0..self.locks.len() {
            for lock in self.locks.values() {
                let most = lock.waiters.iter().map(|it| tasks.rank_of(it.task)).max();
                let owner = &mut tasks.all[lock.owner];
                owner.inherited = owner.inherited.max(most.unwrap_or(0));
            }
        }
    }

    fn pass(&mut self, core: &mut Core, word: Word, flags: u32) {
        self.inherit(&mut core.tasks);
        let Some(lock) = self.locks.get_mut(&word) else {
            word.store(flags);
            return;
        };
        let place = most_urgent(&core.tasks, lock.waiters.iter().copied());
        let next = lock.waiters.remove(place.unwrap_or(0));
        lock.owner = next.task;
        let waiters = if lock.waiters.is_empty() { 0 } else { WAITERS };
        word.store(number(next.task) | waiters | flags);
        core.tasks.wake(next, Woken::ByEvent);
        self.inherit(&mut core.tasks);
    }

    fn queue(&mut self, tasks: &mut Tasks, word: Word, owner: TaskId, ticket: Ticket) {
        word.store(word.load() | WAITERS);
        let lock = self.locks.entry(word).or_insert(Lock {
            owner,
            waiters: Vec::new(),
        });
        lock.owner = owner;
        lock.waiters.push(ticket);
        self.inherit(tasks);
    }

    fn take_most_urgent(&mut self, tasks: &Tasks, word: Word, bits: u32) -> Option<Sleeper> {
        let sleepers = self.sleepers.get_mut(&word)?;
        sleepers.retain(|sleeper| tasks.is_waiting(sleeper.ticket));
        let fits = sleepers
            .iter()
            .enumerate()
            .filter(|(_, it)| it.bits & bits != 0);
        let places: Vec<_> = fits.map(|(place, _)| place).collect();
        let tickets = places.iter().map(|place| sleepers[*place].ticket);
        let chosen = places[most_urgent(tasks, tickets)?];
        Some(sleepers.remove(chosen))
    }

    /// True if `first` waits for a lock of `other`, perhaps by way of others.
    fn waits_for(&self, first: TaskId, other: TaskId) -> bool {
        let mut next = first;
        for _ in 0..=self.locks.len() {
            let awaited = self.locks.values();
            let mut awaited = awaited.filter(|lock| lock.waiters.iter().any(|it| it.task == next));
            match awaited.next() {
                Some(lock) if lock.owner == other => return true,
                Some(lock) => next = lock.owner,
                None => return false,
            }
        }
        false
    }
}

/// A thread is queued a moment before it waits.
fn is_queued(tasks: &Tasks, ticket: Ticket) -> bool {
    tasks.is_waiting(ticket)
        || (tasks.current == ticket.task && tasks.all[ticket.task].state == State::Ready)
}

/// The place of the first of the most urgent.
fn most_urgent(tasks: &Tasks, tickets: impl Iterator<Item = Ticket>) -> Option<usize> {
    let ranks = tickets.map(|ticket| tasks.rank_of(ticket.task)).enumerate();
    ranks
        .max_by_key(|(place, rank)| (*rank, usize::MAX - *place))
        .map(|(place, _)| place)
}

fn number(task: TaskId) -> u32 {
    Tasks::number(task).cast_unsigned()
}

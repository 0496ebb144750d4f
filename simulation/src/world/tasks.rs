//! The threads of a simulated process, and which of them runs: the rule of SCHED_FIFO with inheritance.

use super::processes::ProcessId;
use crate::calls::baton::Baton;
use crate::random::Random;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of a thread, from 0 in the order in which they were made.
pub(crate) type TaskId = usize;

/// A scheduling policy as the kernel numbers them, with its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) number: i32,
    pub(crate) priority: u32,
}

impl Policy {
    pub(crate) const OTHER: Self = Self {
        number: libc::SCHED_OTHER,
        priority: 0,
    };

    /// The urgency: that of SCHED_DEADLINE is above all priorities, that of SCHED_OTHER below.
    fn rank(self) -> u32 {
        match self.number {
            libc::SCHED_FIFO | libc::SCHED_RR => self.priority,
            libc::SCHED_DEADLINE => 100,
            _ => 0,
        }
    }
}

/// Where a task waits: its entries in queues are void once it has woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) task: TaskId,
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Waiting,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    ByEvent,
    ByTime,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) baton: Arc<Baton>,
    pub(crate) name: String,
    /// What the C library calls it; 0 once it was joined.
    pub(crate) handle: usize,
    pub(crate) state: State,
    pub(crate) process: ProcessId,
    /// The process that its next thread begins.
    pub(super) starts: Option<ProcessId>,
    pub(crate) policy: Policy,
    /// The rank that others give to it, who wait for its locks.
    pub(crate) inherited: u32,
    ticket: u64,
    pub(crate) woken: Woken,
    /// What it waits for, for the report of a deadlock.
    pub(crate) waits_for: &'static str,
    /// Among tasks of its rank, the lowest comes first.
    place: i64,
    /// Among tasks that may run, the highest runs (PCT).
    chance: i64,
    pub(crate) cpu_ns: u64,
    pub(crate) joiners: Vec<Ticket>,
}

impl Task {
    pub(crate) fn rank(&self) -> u32 {
        self.policy.rank().max(self.inherited)
    }
}

/// How the seed chooses among tasks that may run.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Simulated processors.
    pub(crate) cpus: usize,
    /// The running task becomes the last choice at one in so many steps; 0 for never.
    pub(crate) change_one_in: u64,
    /// A task that ran for so many steps while others could becomes the last choice.
    pub(crate) turn_steps: u64,
}

#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) all: Vec<Task>,
    pub(crate) current: TaskId,
    choice: Choice,
    random: Random,
    back: i64,
    front: i64,
    last_chance: i64,
    steps_of_turn: u64,
    tickets: u64,
    /// The processes beside the first one.
    pub(super) processes: ProcessId,
    pub(super) killed: BTreeSet<ProcessId>,
}

/// The kernel's number of the first task.
const FIRST_NUMBER: i32 = 1000;

impl Tasks {
    pub(crate) fn new(choice: Choice, random: Random) -> Self {
        Self {
            all: Vec::new(),
            current: 0,
            choice,
            random,
            back: 0,
            front: 0,
            last_chance: 0,
            steps_of_turn: 0,
            tickets: 0,
            processes: 0,
            killed: BTreeSet::new(),
        }
    }

    /// Adds a task with the policy of its creator, and in its process, if it begins no other.
    pub(crate) fn add(&mut self, policy: Policy) -> (TaskId, Arc<Baton>) {
        let baton = Arc::new(Baton::default());
        let process = self.all.get_mut(self.current).map_or(0, |creator| {
            creator.starts.take().unwrap_or(creator.process)
        });
        let place = self.next_back();
        self.all.push(Task {
            baton: Arc::clone(&baton),
            name: String::new(),
            handle: 0,
            state: State::Ready,
            process,
            starts: None,
            policy,
            inherited: 0,
            ticket: 0,
            woken: Woken::ByEvent,
            waits_for: "",
            place,
            chance: self.random.below(1 << 40) as i64,
            cpu_ns: 0,
            joiners: Vec::new(),
        });
        (self.all.len() - 1, baton)
    }

    pub(crate) fn current(&mut self) -> &mut Task {
        &mut self.all[self.current]
    }

    pub(crate) fn number(task: TaskId) -> i32 {
        FIRST_NUMBER + task as i32
    }

    /// The task with that number of the kernel; 0 is the current one.
    pub(crate) fn numbered(&self, number: i32) -> Option<TaskId> {
        if number == 0 {
            return Some(self.current);
        }
        let task = usize::try_from(number - FIRST_NUMBER).ok()?;
        (self.all.get(task)?.state != State::Ended).then_some(task)
    }

    /// Ends a task, and wakes those that join it.
    pub(crate) fn end(&mut self, task: TaskId) {
        let task = &mut self.all[task];
        task.state = State::Ended;
        for joiner in std::mem::take(&mut task.joiners) {
            self.wake(joiner, Woken::ByEvent);
        }
    }

    /// True if a task beside the current one has not ended.
    pub(crate) fn others_run(&self) -> bool {
        let mut tasks = self.all.iter().enumerate();
        tasks.any(|(number, task)| number != self.current && task.state != State::Ended)
    }

    /// True if the task with that number was killed.
    pub(crate) fn was_killed(&self, number: i32) -> bool {
        let task = self.all.get((number - FIRST_NUMBER) as usize);
        task.is_some_and(|task| self.is_killed(task.process))
    }

    /// A ticket for queues that the current task waits in next.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        let task = self.current;
        self.all[task].ticket = self.tickets;
        Ticket {
            task,
            number: self.tickets,
        }
    }

    pub(crate) fn is_waiting(&self, ticket: Ticket) -> bool {
        let task = &self.all[ticket.task];
        task.state == State::Waiting && task.ticket == ticket.number
    }

    /// Makes a task ready that waits with that ticket; false if it does no more.
    pub(crate) fn wake(&mut self, ticket: Ticket, woken: Woken) -> bool {
        if !self.is_waiting(ticket) {
            return false;
        }
        let place = self.next_back();
        let task = &mut self.all[ticket.task];
        (task.state, task.woken, task.place) = (State::Ready, woken, place);
        true
    }

    /// A task that is lowered goes to the front of its new priority, one that is raised to the back (sched(7)).
    pub(crate) fn set_policy(&mut self, task: TaskId, policy: Policy) {
        let is_lowered = policy.rank() < self.all[task].policy.rank();
        self.all[task].policy = policy;
        if is_lowered {
            self.front -= 1;
            self.all[task].place = self.front;
        } else {
            self.all[task].place = self.next_back();
        }
    }

    /// The current task lets others of its priority run first.
    pub(crate) fn give_way(&mut self) {
        let place = self.next_back();
        self.current().place = place;
        self.make_last();
    }

    /// Sometimes makes the current task the last choice.
    pub(crate) fn step(&mut self) {
        self.steps_of_turn += 1;
        let is_over = self.steps_of_turn > self.choice.turn_steps;
        if is_over || self.random.one_in(self.choice.change_one_in) {
            self.make_last();
        }
    }

    /// The task that runs next: one of the most urgent ready ones, as many as there are processors.
    pub(crate) fn choose(&mut self) -> Option<TaskId> {
        let mut ready: Vec<_> = (0..self.all.len())
            .filter(|task| self.all[*task].state == State::Ready)
            .collect();
        ready.sort_by_key(|task| (u32::MAX - self.all[*task].rank(), self.all[*task].place));
        // Tasks without a priority share a processor, in any order.
        let last = ready.get(self.choice.cpus - 1).or(ready.last())?;
        let shares = self.all[*last].rank() == 0;
        if !shares {
            ready.truncate(self.choice.cpus);
        }
        let next = ready.into_iter().max_by_key(|task| self.all[*task].chance);
        if next != Some(self.current) {
            self.steps_of_turn = 0;
        }
        next
    }

    /// The ranks of all tasks that wait, in order.
    pub(crate) fn ranks_waiting(&self) -> Vec<u32> {
        let waiting = self.all.iter().filter(|task| task.state == State::Waiting);
        let mut ranks: Vec<_> = waiting.map(Task::rank).collect();
        ranks.sort_unstable();
        ranks
    }

    pub(crate) fn has_one_cpu(&self) -> bool {
        self.choice.cpus == 1
    }

    pub(crate) fn rank_of(&self, task: TaskId) -> u32 {
        self.all[task].rank()
    }

    fn make_last(&mut self) {
        self.steps_of_turn = 0;
        self.last_chance -= 1;
        let chance = self.last_chance;
        self.current().chance = chance;
    }

    fn next_back(&mut self) -> i64 {
        self.back += 1;
        self.back
    }
}

//! Simulated processes: threads that end together, with their descriptors, at any moment.
//!
//! All of them share the memory of the real process. What has one copy there, as the static variables of the ORB, outlives a kill.

use super::files::Files;
use super::tasks::State;
use super::{Core, Event, World, now_ns, with};
use std::thread::JoinHandle;

pub(crate) type ProcessId = u32;

/// How a process ends that does not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kill {
    /// By a signal: its host closes its connections, and writes its files.
    Signal,
    /// Its host loses its power: nobody tells its peers, and what is not stable may be lost.
    Power,
}

/// A process beside that of the system's first thread.
#[derive(Debug)]
pub(crate) struct Process {
    id: ProcessId,
    main: JoinHandle<()>,
}

impl Process {
    pub(crate) fn start(main: impl FnOnce() + Send + 'static) -> Self {
        let id = with(|world| world.core.tasks.new_process());
        Self {
            id,
            main: std::thread::spawn(main),
        }
    }

    /// Kills it at a time, wherever its threads are then.
    pub(crate) fn kill_at(&self, at_ns: u64, how: Kill) {
        with(|world| {
            let (process, at_ns) = (self.id, at_ns.max(world.core.now_ns));
            world.core.at(at_ns, Event::Kill { process, how });
        });
    }

    pub(crate) fn is_running(&self) -> bool {
        with(|world| world.core.tasks.runs(self.id))
    }

    /// Waits for the end of its first thread, or of all if it is killed.
    pub(crate) fn wait(self) {
        while self.is_running() && !self.main.is_finished() {
            crate::calls::sleep_until(now_ns() + LOOK_NS);
        }
        if !with(|world| world.core.tasks.is_killed(self.id)) {
            self.main.join().expect("the process does not panic");
        }
    }
}

/// How often a process looks whether another one has ended.
const LOOK_NS: u64 = 200_000;

impl World {
    pub(super) fn kill(&mut self, process: ProcessId, how: Kill) {
        if !self.core.tasks.runs(process) {
            return;
        }
        self.core.trace(|| format!("kills {process}: {how:?}"));
        self.core.tasks.kill(process);
        let tasks = &self.core.tasks;
        let killed: Vec<_> = (0..tasks.all.len())
            .filter(|task| tasks.all[*task].process == process)
            .collect();
        self.futexes
            .abandon(&mut self.core, 0, |owner| killed.contains(&owner));
        self.files.kill(&mut self.core, process, how);
        if how == Kill::Power {
            self.disk.lose_power(&mut self.core.random);
        }
    }
}

impl super::tasks::Tasks {
    /// The number of a new process, in which the current task's next thread is the first.
    fn new_process(&mut self) -> ProcessId {
        self.processes += 1;
        let process = self.processes;
        self.current().starts = Some(process);
        process
    }

    fn runs(&self, process: ProcessId) -> bool {
        let mut tasks = self.all.iter();
        tasks.any(|task| task.process == process && task.state != State::Ended)
    }

    pub(super) fn is_killed(&self, process: ProcessId) -> bool {
        self.killed.contains(&process)
    }

    fn kill(&mut self, process: ProcessId) {
        self.killed.insert(process);
        for task in 0..self.all.len() {
            if self.all[task].process == process && self.all[task].state != State::Ended {
                self.end(task);
            }
        }
    }
}

impl Files {
    fn kill(&mut self, core: &mut Core, process: ProcessId, how: Kill) {
        for (descriptor, file) in self.of_process(process) {
            if how == Kill::Power {
                self.silence(file);
            }
            let _ = self.close(core, descriptor);
        }
    }
}

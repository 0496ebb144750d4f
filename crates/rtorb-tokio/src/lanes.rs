//! Threads of stated priority that run tasks.

use crate::TaskExecutor;
use rtorb::rt::Priority;
use rtorb::thread::ThreadConfig;
use rtorb_os::thread::{JoinHandle, spawn};
use std::io;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot::{Sender, channel};

/// A lane of tasks: one thread, and the calls that it runs.
#[derive(Clone, Debug)]
pub struct TaskLane {
    /// The lowest CORBA priority of the calls of this lane. They go up to that of the next lane. The lowest lane runs the calls below it,
    /// and those without a priority, too.
    pub priority: Priority,
    /// The scheduling of its thread. It is not derived from the priority, because a task may run long: give it what is left of the CPU's time
    /// beside the lanes of the ORB.
    pub thread: ThreadConfig,
}

/// Threads that run the tasks of `async` servants, each with a tokio runtime of its own: a task stays on the thread of its lane, and is not
/// behind tasks of less urgent lanes.
///
/// Dropping it ends the threads, after the step that each is in, and drops their tasks; each call that has no answer then gets
/// NO_RESPONSE. What a task has begun by `spawn_blocking` goes on, and nothing waits for it. Drop it after the end of the ORB, and not in a
/// task.
#[derive(Debug)]
pub struct TaskLanes {
    lanes: Vec<RunningLane>,
}

#[derive(Debug)]
struct RunningLane {
    priority: Priority,
    runtime: Handle,
    /// Dropped, it ends the thread.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<Option<()>>>,
}

impl TaskLanes {
    /// Starts the threads of lanes, named `rtorb-tasks-` and the priority.
    ///
    /// # Errors
    /// Of kind [`InvalidInput`](io::ErrorKind::InvalidInput) if there is no lane, or two have the same priority. The host's refusal of a thread,
    /// of its scheduling or of a runtime's descriptors; then no thread is left.
    pub fn start(mut lanes: Vec<TaskLane>) -> io::Result<Self> {
        lanes.sort_by_key(|lane| lane.priority);
        if lanes.is_empty() {
            let refused = "there is no lane: give one at least";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, refused));
        }
        let pairs = lanes.windows(2);
        if let Some(pair) = pairs
            .into_iter()
            .find(|it| it[0].priority == it[1].priority)
        {
            let twice = format!("two lanes have priority {}", pair[0].priority);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, twice));
        }
        let lanes: io::Result<Vec<_>> = lanes.into_iter().map(RunningLane::start).collect();
        Ok(Self { lanes: lanes? })
    }

    /// Returns the executor of these lanes, for servants.
    pub fn executor(&self) -> TaskExecutor {
        let lanes = self.lanes.iter();
        TaskExecutor::new(lanes.map(|lane| (lane.priority, lane.runtime.clone())))
    }
}

impl RunningLane {
    fn start(lane: TaskLane) -> io::Result<Self> {
        let TaskLane { priority, thread } = lane;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = channel::<()>();
        let run = move || {
            // The sender is dropped, and sends nothing.
            let _ = runtime.block_on(ended);
            // Blocking work of a task may not end.
            runtime.shutdown_background();
        };
        let thread = spawn(&format!("rtorb-tasks-{priority}"), &thread, run);
        Ok(Self {
            priority,
            runtime: handle,
            running: Some(running),
            thread: Some(thread.map_err(io::Error::other)?),
        })
    }
}

impl Drop for RunningLane {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            // A task that panics does not end the thread.
            let _ = thread.join();
        }
    }
}

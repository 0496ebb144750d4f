//! The executor of servants whose operations are `async`.

use rtorb::Executor;
use rtorb::rt::Priority;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Runs the calls of `async` servants as tasks of tokio: of one runtime, or of [`TaskLanes`](crate::TaskLanes).
///
/// ```no_run
/// # use rtorb::{Deferring, TaskServant};
/// use rtorb_tokio::TaskExecutor;
/// # async fn example() {
/// let executor = TaskExecutor::from(tokio::runtime::Handle::current());
/// // root.activate(Deferring(TaskServant::new(Arc::new(MyMotor), executor)))?
/// # }
/// ```
///
/// The task of a call whose runtime has ended is dropped, which answers the call with NO_RESPONSE.
#[derive(Clone, Debug)]
pub struct TaskExecutor {
    /// By ascending priority. There is at least one.
    lanes: Arc<[(Priority, Handle)]>,
}

impl TaskExecutor {
    /// Makes an executor of lanes by ascending priority, one at least.
    pub(crate) fn new(lanes: impl Iterator<Item = (Priority, Handle)>) -> Self {
        Self {
            lanes: lanes.collect(),
        }
    }
}

impl From<Handle> for TaskExecutor {
    /// Runs the tasks of all calls on one runtime.
    fn from(runtime: Handle) -> Self {
        Self::new([(Priority::MIN, runtime)].into_iter())
    }
}

impl Executor for TaskExecutor {
    fn spawn(&self, priority: Option<Priority>, task: impl Future<Output = ()> + Send + 'static) {
        let priority = priority.unwrap_or(Priority::MIN);
        // The most urgent lane that is not more urgent than the call; for a call below all, the least urgent.
        let above = self.lanes.partition_point(|lane| lane.0 <= priority);
        let (_, runtime) = &self.lanes[above.saturating_sub(1)];
        drop(runtime.spawn(task));
    }
}

//! Servants whose operations are `async`: each call is a task of an executor.

use super::responder::Responder;
use crate::realtime::Priority;
use core::future::Future;
use std::sync::Arc;

/// Runs the tasks of servants whose operations are `async`. `rtorb-tokio` has one for the runtime tokio.
pub trait Executor: Send + Sync + 'static {
    /// Starts a task for a call with that CORBA priority; `None` if the call has none.
    ///
    /// It is called by the thread of the server that has read the request, and must not run the task there: that thread serves others
    /// meanwhile. A task that is dropped answers its call with NO_RESPONSE.
    fn spawn(&self, priority: Option<Priority>, task: impl Future<Output = ()> + Send + 'static);
}

/// A servant of type `S`, each of whose calls is a task of an executor: `S` implements a trait like `MotorAsyncServant`, which
/// `rtorb_idl::Compiler::async_servants` generates beside `MotorServant`. It defers its replies:
///
/// ```ignore
/// let motor: Motor = poa.activate(Deferring(TaskServant::new(Arc::new(MyMotor), executor)))?;
/// ```
///
/// Once the client does not wait any more or is gone, or the deadline of the call has passed, a task is dropped at the point where it waits
/// itself. [`Limits::deferred_replies_max`](crate::Limits::deferred_replies_max) bounds the tasks of an ORB. A oneway has no reply that could bound it so, and its operation is not `async`.
#[derive(Clone, Debug)]
pub struct TaskServant<S, X> {
    servant: Arc<S>,
    executor: X,
}

impl<S, X: Executor> TaskServant<S, X> {
    /// Makes the calls of `servant` tasks of `executor`.
    pub const fn new(servant: Arc<S>, executor: X) -> Self {
        Self { servant, executor }
    }

    /// Support API for generated code. Not public.
    #[doc(hidden)]
    pub fn servant(&self) -> &S {
        &self.servant
    }

    /// Support API for generated code. Not public.
    ///
    /// Starts the task of a call.
    #[doc(hidden)]
    pub fn spawn<T, E, F>(&self, responder: Responder<T, E>, call: impl FnOnce(Arc<S>) -> F)
    where
        T: 'static,
        E: 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let priority = responder.priority();
        let work = call(Arc::clone(&self.servant));
        self.executor.spawn(priority, responder.answer(work));
    }
}

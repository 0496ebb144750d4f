//! The distributable thread of the calling thread (RTScheduling::Current).

use super::Orb;
use crate::distributable::{
    self, SchedulingDiscipline, SchedulingParameter, Segment, SegmentEffect, ThreadId,
};
use crate::exception::{SystemException, local};
use crate::realtime::{RtCore, ThreadPriorityBefore, refusal, set_thread_priority};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::Arc;

/// The distributable thread of the calling thread (RTScheduling::Current), scheduled by one discipline.
///
/// A distributable thread begins with its outermost segment, or by [`spawn`](Self::spawn). Its requests carry its identity and the
/// parameters of its segment, so a servant runs as the thread of its client. A cancellation reaches it wherever it is.
///
/// ```
/// use rtorb::rt::{EarliestDeadlineFirst, SchedulingParameter};
/// use std::time::Duration;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let orb = rtorb::Orb::builder().build()?;
/// let current = orb.scheduling_current(EarliestDeadlineFirst);
/// let deadline = SchedulingParameter::deadline_after(Duration::from_millis(20));
/// current.begin_scheduling_segment("control", deadline, None)?;
/// assert!(current.id().is_some());
/// // Calls from here on are those of the thread, and end by its deadline.
/// current.end_scheduling_segment("control")?;
/// assert_eq!(current.id(), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SchedulingCurrent {
    orb: Orb,
    discipline: Arc<dyn SchedulingDiscipline>,
}

/// The error of a scheduling segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The discipline does not have that parameter (UNSUPPORTED_SCHEDULING_DISCIPLINE).
    #[error("the scheduling discipline {discipline:?} has no parameter like {parameter:?}")]
    UnsupportedDiscipline {
        /// The name of the discipline.
        discipline: &'static str,
        /// The parameter.
        parameter: SchedulingParameter,
    },
    /// An error of the ORB; THREAD_CANCELLED among them.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// A distributable thread that is in this process, or was (RTScheduling::DistributableThread).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DistributableThread {
    id: ThreadId,
}

/// Whether a distributable thread is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributableThreadState {
    /// It runs.
    Active,
    /// It is cancelled, and returns to where it began.
    Cancelled,
}

/// A distributable thread that this process has begun on a thread of its own.
#[derive(Debug)]
pub struct SpawnedThread<T> {
    thread: DistributableThread,
    handle: JoinHandle<Option<Result<T, SystemException>>>,
}

/// The outermost segment of a spawned thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpawnOptions<'n> {
    /// The name of the segment.
    pub name: &'n str,
    /// How it is scheduled; by default by the implicit parameter of the calling thread's segment.
    pub parameter: Option<SchedulingParameter>,
    /// How threads are scheduled that it makes.
    pub implicit: Option<SchedulingParameter>,
}

impl SchedulingCurrent {
    pub(crate) fn new(orb: Orb, discipline: Arc<dyn SchedulingDiscipline>) -> Self {
        Self { orb, discipline }
    }

    /// Begins a scheduling segment: a distributable thread, or a segment within the current one.
    ///
    /// `implicit` is the parameter of threads that the segment makes, by a oneway or [`spawn`](Self::spawn).
    ///
    /// # Errors
    /// [`SegmentError::UnsupportedDiscipline`]; THREAD_CANCELLED; BAD_PARAM for a name of more than 255 bytes; IMP_LIMIT for more than
    /// 64 segments; the errors of [`RtCurrent::set_the_priority`](crate::rt::RtCurrent::set_the_priority).
    //= RT-CORBA 1.2 §Scheduling Segments
    //# A segment that begins gives its thread the effect of its parameter.
    pub fn begin_scheduling_segment(
        &self,
        name: &str,
        parameter: impl Into<Option<SchedulingParameter>>,
        implicit: impl Into<Option<SchedulingParameter>>,
    ) -> Result<(), SegmentError> {
        self.enter(
            name,
            parameter.into(),
            implicit.into(),
            distributable::begin_segment,
        )
    }

    /// Gives the innermost segment a name and parameters instead of those that it has. If they give the thread no priority, it has the one from
    /// before the segment again.
    ///
    /// # Errors
    /// As [`begin_scheduling_segment`](Self::begin_scheduling_segment); BAD_INV_ORDER outside of a segment.
    pub fn update_scheduling_segment(
        &self,
        name: &str,
        parameter: impl Into<Option<SchedulingParameter>>,
        implicit: impl Into<Option<SchedulingParameter>>,
    ) -> Result<(), SegmentError> {
        self.enter(
            name,
            parameter.into(),
            implicit.into(),
            distributable::update_segment,
        )
    }

    /// Ends the innermost segment, which has that name: the thread has the priority again that it had before. With the outermost segment
    /// its distributable thread ends.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the calling thread began no segment, or serves a request and has ended those that it began; BAD_PARAM for another
    /// name; THREAD_CANCELLED if the thread was cancelled: the segment has ended all the same.
    pub fn end_scheduling_segment(&self, name: &str) -> Result<(), SystemException> {
        let (ended, was_cancelled) = distributable::end_segment(name)?;
        if let Some(before) = ended.priority_before {
            before.give_back(self.rt())?;
        }
        was_cancelled
    }

    /// Begins a distributable thread on a new thread of the operating system, configured by `config`.
    ///
    /// # Errors
    /// [`SegmentError::UnsupportedDiscipline`]; THREAD_CANCELLED; NO_RESOURCES or NO_PERMISSION if the host refuses the thread or its
    /// scheduling.
    //= RT-CORBA 1.2 §Distributable Threads
    //# A spawned distributable thread has an identity of its own.
    pub fn spawn<T: Send + 'static>(
        &self,
        options: &SpawnOptions<'_>,
        config: &ThreadConfig,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<SpawnedThread<T>, SegmentError> {
        distributable::check()?;
        let parameter = options
            .parameter
            .or_else(|| self.implicit_scheduling_parameter());
        let effect = self.effect(parameter)?;
        let segment = Segment {
            name: options.name.to_owned(),
            parameter,
            implicit: options.implicit,
            priority_before: None,
        };
        let begun = distributable::BegunThread::new(segment)?;
        let thread = DistributableThread { id: begun.id() };
        let orb = self.orb.clone();
        let run = move || {
            begun.run(|| {
                // The thread ends with the work, so it needs no other priority afterwards.
                let set = effect
                    .priority
                    .map(|it| set_thread_priority(&orb.core.client.rt, it));
                set.unwrap_or(Ok(())).map(|()| work())
            })
        };
        let handle = spawn(options.name, config, run).map_err(refusal)?;
        Ok(SpawnedThread { thread, handle })
    }

    /// Returns THREAD_CANCELLED if the distributable thread of the calling thread is cancelled. A long computation asks now and then; calls
    /// and segments ask by themselves.
    ///
    /// # Errors
    /// THREAD_CANCELLED.
    pub fn check(&self) -> Result<(), SystemException> {
        distributable::check()
    }

    /// Returns the identity of the distributable thread; `None` outside of one.
    pub fn id(&self) -> Option<ThreadId> {
        distributable::current(|thread| Some(thread?.id()))
    }

    /// Returns the parameter of the innermost segment.
    pub fn scheduling_parameter(&self) -> Option<SchedulingParameter> {
        distributable::current(|thread| thread?.segment().parameter)
    }

    /// Returns the parameter of threads that the innermost segment makes.
    pub fn implicit_scheduling_parameter(&self) -> Option<SchedulingParameter> {
        distributable::current(|thread| thread?.segment().implicit)
    }

    /// Returns the names of the segments in this process, the innermost first. In a servant, the last one is that of the client.
    pub fn current_scheduling_segment_names(&self) -> Vec<String> {
        distributable::current(|thread| {
            let segments = thread.map_or(&[][..], |thread| thread.segments());
            segments.iter().rev().map(|it| it.name.clone()).collect()
        })
    }

    /// Returns the distributable thread with that identity; `None` if it does not run in this process.
    pub fn lookup(&self, id: ThreadId) -> Option<DistributableThread> {
        distributable::is_known(id).then_some(DistributableThread { id })
    }

    /// Begins or updates a segment by `change`, once its thread has the priority of the segment.
    fn enter(
        &self,
        name: &str,
        parameter: Option<SchedulingParameter>,
        implicit: Option<SchedulingParameter>,
        change: fn(Segment) -> Result<Option<ThreadPriorityBefore>, SystemException>,
    ) -> Result<(), SegmentError> {
        let effect = self.effect(parameter)?;
        self.effect(implicit)?;
        let before = effect.priority.map(|_| ThreadPriorityBefore::of_caller());
        if let Some(priority) = effect.priority {
            set_thread_priority(self.rt(), priority)?;
        }
        let changed = change(Segment {
            name: name.to_owned(),
            parameter,
            implicit,
            priority_before: before,
        });
        let gives_back = match changed {
            Ok(former) => former,
            Err(_) => before,
        };
        if let Some(before) = gives_back {
            before.give_back(self.rt())?;
        }
        Ok(changed.map(|_| ())?)
    }

    fn effect(
        &self,
        parameter: Option<SchedulingParameter>,
    ) -> Result<SegmentEffect, SegmentError> {
        let Some(parameter) = parameter else {
            return Ok(SegmentEffect::default());
        };
        let effect = self.discipline.effect(&parameter);
        effect.ok_or_else(|| SegmentError::UnsupportedDiscipline {
            discipline: self.discipline.name(),
            parameter,
        })
    }

    fn rt(&self) -> &RtCore {
        &self.orb.core.client.rt
    }
}

impl DistributableThread {
    /// Returns its identity.
    pub fn id(self) -> ThreadId {
        self.id
    }

    /// Returns whether the thread is cancelled. One that has ended is active no more, and counts as cancelled.
    pub fn state(self) -> DistributableThreadState {
        match distributable::is_cancelled(self.id) {
            Some(false) => DistributableThreadState::Active,
            _ => DistributableThreadState::Cancelled,
        }
    }

    /// Cancels the thread: wherever it is, it gets THREAD_CANCELLED at its next call, segment or [check](SchedulingCurrent::check).
    ///
    /// Servers that the thread is at are told by a CancelRequest, and tell those that they called. It does not wait for that. A call whose
    /// server does not reply within 50 ms ends without a reply: THREAD_CANCELLED, COMPLETED_MAYBE. Where many threads wait on one connection
    /// (every wait strategy but `read`), the call does not wait for that reply. With `connection_thread`, and before GIOP 1.2 with the other
    /// two, no CancelRequest is sent there.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the thread is not in this process.
    //= RT-CORBA 1.2 §Distributable Threads
    //# A distributable thread can be cancelled by its identity.
    pub fn cancel(self) -> Result<(), SystemException> {
        if distributable::cancel(self.id) {
            Ok(())
        } else {
            Err(local::THREAD_UNKNOWN)
        }
    }
}

impl<T> SpawnedThread<T> {
    /// Returns the distributable thread.
    pub fn thread(&self) -> DistributableThread {
        self.thread
    }

    /// Waits until the thread ends, and returns its result.
    ///
    /// # Errors
    /// The exception of a refused priority; UNKNOWN if the thread panicked.
    pub fn join(self) -> Result<T, SystemException> {
        // The thread is configured, so it has begun to work.
        let ended = self.handle.join().ok().flatten();
        ended.unwrap_or_else(|| Err(local::THREAD_PANICKED))
    }
}

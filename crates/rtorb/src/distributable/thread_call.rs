//! A call that a distributable thread makes.

use super::active_call::ActiveCall;
use super::current::current_mut;
use super::parameter::SchedulingParameter;
use super::thread_id::ThreadId;
use super::visit::Visit;
use crate::clock::monotonic_ns;
use crate::exception::{ExceptionKind, SystemException, local};
use rtorb_wire::ByteOrder;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::ThreadContext;
use std::sync::Arc;

/// A call of a distributable thread, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct ThreadCall {
    visit: Arc<Visit>,
    /// The data of the request's context.
    pub(crate) context: Vec<u8>,
    deadline_ns: u64,
}

/// The deadline of a wait without one.
const FAR_NS: u64 = i64::MAX as u64;

impl ThreadCall {
    /// Begins a call of the distributable thread that the calling thread runs; `None` if it runs none.
    ///
    /// # Errors
    /// THREAD_CANCELLED, COMPLETED_NO; INTERNAL for a oneway if the host gives no random numbers.
    pub(crate) fn begin(
        is_oneway: bool,
        order: ByteOrder,
    ) -> Result<Option<Self>, SystemException> {
        let new_id = if is_oneway {
            Some(ThreadId::random()?)
        } else {
            None
        };
        current_mut(|thread| {
            let Some(thread) = thread else {
                return Ok(None);
            };
            if thread.visit().is_cancelled() {
                return Err(local::THREAD_CANCELLED);
            }
            let mut context = core::mem::take(&mut thread.context);
            let (segment, now_ns) = (thread.segment(), monotonic_ns());
            let implicit = SchedulingParameter::to_wire(segment.implicit, now_ns);
            //= RT-CORBA 1.2 §Distributable Threads
            //# A oneway begins a new distributable thread, with the implicit scheduling parameter of its caller.
            let (id, name, parameter) = match new_id {
                Some(id) => (id, "", implicit),
                None => {
                    let parameter = SchedulingParameter::to_wire(segment.parameter, now_ns);
                    (thread.id(), segment.name.as_str(), parameter)
                }
            };
            let sent = ThreadContext {
                thread_id: id.to_bytes(),
                segment: name.into(),
                parameter,
                implicit,
            };
            sent.write(&mut context, order)?;
            Ok(Some(Self {
                visit: Arc::clone(thread.visit()),
                context,
                deadline_ns: thread.deadline_ns(),
            }))
        })
    }

    /// Returns the earliest deadline of the thread's segments, which the call inherits.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Returns the deadline of the call by which a cancellation can end its wait: `own`, or one that is far away.
    pub(crate) fn deadline_of_wait(own: Deadline) -> Deadline {
        own.no_later_than(FAR_NS)
    }

    /// Notes that the request is sent. Until [`end_wait`](Self::end_wait), a cancellation ends the wait for its reply.
    pub(crate) fn begin_wait(&self, call: ActiveCall) {
        self.visit.begin_call(call);
    }

    /// Notes that the wait has ended.
    #[cold]
    pub(crate) fn end_wait(&self) {
        self.visit.end_call();
    }

    /// Ends the call, and returns what its caller gets: THREAD_CANCELLED instead of the exception of a wait that a cancellation ended.
    //= RT-CORBA 1.2 §Distributable Threads
    //# A cancelled distributable thread gets THREAD_CANCELLED, which goes back to where it began.
    pub(crate) fn end(self, ended: Result<(), SystemException>) -> Result<(), SystemException> {
        current_mut(|thread| {
            if let Some(thread) = thread {
                thread.context = self.context;
            }
        });
        let Err(exception) = ended else {
            return Ok(());
        };
        if exception.kind == ExceptionKind::ThreadCancelled {
            self.visit.cancel();
            return Err(exception);
        }
        let has_no_reply = matches!(
            exception.kind,
            ExceptionKind::Timeout | ExceptionKind::CommFailure | ExceptionKind::Transient
        );
        if has_no_reply && self.visit.is_cancelled() {
            return Err(local::THREAD_CANCELLED.with_completion(exception.completed));
        }
        Err(exception)
    }
}

//! Calls that the recorder records.

use super::ObjectRef;
use super::call::CallRequest;
use crate::connection::{Arguments, Results};
use crate::exception::SystemException;
use crate::recorder::{CallNote, CallOutcome, CallSide, StartedTimes, ThreadPart};
use crate::thread_state;
use crate::wait::pending_call::PendingCall;
use rtorb_wire::Reader;
use rtorb_wire::giop::ReplyStatus;

impl ObjectRef {
    /// Invokes the object, and records the call.
    pub(super) fn invoke_recorded<'a>(
        &self,
        part: &ThreadPart,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let begun = part.begin_call();
        let mut outcome = CallOutcome::Done;
        let mut read = |status, r: &mut Reader<'_>| {
            if status == ReplyStatus::UserException {
                outcome = CallOutcome::UserException;
            }
            results(status, r)
        };
        let ended = if self.inner.client.core.is_intercepted() {
            self.invoke_intercepted(request, arguments, &mut read)
        } else {
            self.follow_object(request, arguments, &mut read)
        };
        if let Err(exception) = &ended {
            outcome = CallOutcome::of(exception.kind);
        }
        let priority = thread_state::scheduling().priority();
        part.called(request.operation.as_bytes(), outcome, priority, &begun);
        ended
    }
}

/// The beginning of a started call that is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct BegunStart {
    /// When, in ticks of the recorder.
    began: u64,
    /// The thread that starts it.
    thread: u32,
    /// The CORBA priority of that thread.
    priority: i16,
}

impl BegunStart {
    /// Returns that of a call of the calling thread; `None` if the recorder has no part for the thread.
    pub(super) fn now() -> Option<Self> {
        let part = thread_state::enter_recorder()?;
        Some(Self {
            began: part.now(),
            thread: part.thread(),
            priority: thread_state::scheduling().priority(),
        })
    }

    /// Records a call whose request could not be sent.
    pub(super) fn record_unsent(self, operation: &str, exception: &SystemException) {
        let times = [0; 2];
        let outcome = CallOutcome::of(exception.kind);
        self.note(operation.as_bytes(), outcome, times, (0, 0));
    }

    /// Records a call that has ended.
    pub(super) fn record(self, operation: &[u8], outcome: CallOutcome, ended: &PendingCall) {
        let (sent, connection) = ended.sent;
        let arrived = ended.waiter.delivery.lock().arrived;
        let request = (ended.request_id, connection);
        self.note(operation, outcome, [sent, arrived], request);
    }

    fn note(
        self,
        operation: &[u8],
        outcome: CallOutcome,
        [sent, arrived]: [u64; 2],
        (request_id, connection): (u32, u64),
    ) {
        // The thread that takes the result writes its own part.
        let Some(part) = thread_state::enter_recorder() else {
            return;
        };
        let note = CallNote {
            side: CallSide::Started,
            outcome,
            operation,
            priority: self.priority,
            request_id,
            connection,
        };
        let times = StartedTimes {
            began: self.began,
            sent,
            arrived,
            thread: self.thread,
        };
        part.started(&note, &times);
    }
}

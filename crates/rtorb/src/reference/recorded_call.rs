//! Calls that the recorder records.

use super::ObjectRef;
use super::call::CallRequest;
use crate::connection::{Arguments, Results};
use crate::exception::SystemException;
use crate::recorder::{CallOutcome, ThreadPart};
use crate::thread_state;
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

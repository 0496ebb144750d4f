//! Calls of objects of the same ORB on the calling thread: no connection, no other thread.
//!
//! Request and reply are the same messages as on a connection, in buffers of the calling thread. So arguments are copied, and
//! forwards, exceptions and service contexts work in the same way.

use super::client::CollocatedRequest;
use super::invocation::{Arguments, Invocation, InvocationKind};
use super::reply::{Outcome, Results, no_reply, read_whole_reply};
use crate::clock::monotonic_ns;
use crate::deadline;
use crate::exception::SystemException;
use crate::thread_state;
use core::cell::Cell;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::{Deadline, ReplyError};
use rtorb_wire::giop::Response;

/// Returns true if an invocation may be served on the calling thread.
///
/// A oneway must not take the caller's time, and a LocateRequest opens a connection: these need a transport.
#[inline]
pub(super) fn is_permitted(invocation: &Invocation<'_>) -> bool {
    invocation.route.is_collocated && may_be_collocated(invocation.kind, invocation.response)
}

/// Returns true for a request that may be served on the calling thread.
#[inline]
pub(crate) fn may_be_collocated(kind: InvocationKind<'_>, response: Response) -> bool {
    response == Response::FromTarget
        && matches!(
            kind,
            InvocationKind::Operation | InvocationKind::WithContexts(_)
        )
}

/// Calls an object of the same ORB on the calling thread.
// Not inlined: it is not in the path of a call over a connection.
#[inline(never)]
pub(super) fn call<'a>(
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, SystemException> {
    if let Some(part) = thread_state::recorder() {
        part.note_collocated();
    }
    let mut request = Request {
        invocation,
        arguments,
        results,
        end_of_wait: Cell::new(Deadline::NONE),
    };
    let outcome = invocation.client.host.serve_here(&mut request);
    if matches!(outcome, Ok(Outcome::Forward(_))) {
        deadline::note_end_of_wait(request.end_of_wait.get());
    }
    outcome
}

/// A request, and the reader of its results.
struct Request<'f, 'x, 'a> {
    invocation: &'f Invocation<'x>,
    arguments: Arguments<'f, 'a>,
    results: Results<'f>,
    /// The deadline of the wait for a reply; [`Deadline::NONE`] if it did not wait.
    end_of_wait: Cell<Deadline>,
}

/// The id of each request: no other is in its buffer.
const REQUEST_ID: u32 = 0;

impl Invocation<'_> {
    /// Returns the deadline of a collocated call that begins to wait: for its manager, or for a deferred reply.
    pub(crate) fn end_of_wait(&self) -> Deadline {
        match self.deadline {
            Deadline::NONE => Deadline::after(monotonic_ns(), self.route.timeout_ns)
                .no_later_than(deadline::inherited_ns()),
            begun_before => begun_before,
        }
    }
}

impl CollocatedRequest for Request<'_, '_, '_> {
    fn char_code_set(&self) -> CharCodeSet {
        self.invocation.route.endpoint.char_code_set
    }

    fn write(&mut self, buffer: &mut Vec<u8>) -> Result<usize, SystemException> {
        let mut w = self.invocation.writer(core::mem::take(buffer));
        // Both sides have the code sets from the reference.
        let written = self
            .invocation
            .encode(&mut w, REQUEST_ID, false, self.arguments);
        let (bytes, len) = w.finish_whole();
        *buffer = bytes;
        written.map(|()| len).map_err(SystemException::from_encode)
    }

    fn read(&mut self, reply: &[u8]) -> Result<Outcome, SystemException> {
        let invocation = self.invocation;
        read_whole_reply(invocation, REQUEST_ID, reply, self.results)
            .map_err(|error| error.into_exception(invocation))
    }

    fn deadline(&self) -> Deadline {
        let deadline = self.invocation.end_of_wait();
        self.end_of_wait.set(deadline);
        deadline
    }

    fn timed_out(&self, deadline: Deadline) -> SystemException {
        let endpoint = &self.invocation.route.endpoint.endpoint;
        no_reply(ReplyError::TimedOut, endpoint, deadline)
    }
}

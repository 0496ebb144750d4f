//! Serves requests of the same ORB on the threads that make them.

use super::call::RequestOrigin;
use super::deferred_replies::{AwaitedReply, NOT_ANSWERED, NOT_ANSWERED_IN_TIME};
use super::names::NameCache;
use super::server_core::ServerCore;
use super::thread_priority::ThreadPriority;
use super::upcall;
use super::workspace::Workspace;
use crate::connection::{CollocatedRequest, Outcome};
use crate::exception::{COLLOCATED_DEPTH, CompletionStatus, ExceptionKind, SystemException, local};
use crate::thread_state::THREAD;
use core::cell::RefCell;
use rtorb_wire::DecodeError;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::Message;
use rtorb_wire::giop::{Header, RequestHeader};

thread_local! {
    /// The idle buffers of this thread, one for each call that was in progress at the same time.
    #[expect(clippy::vec_box, reason = "each call takes one out and puts it back: a pointer moves")]
    static IDLE: RefCell<Vec<Box<CallBuffers>>> = const { RefCell::new(Vec::new()) };
}

/// The buffers of one collocated call, used again for the next one.
#[derive(Debug)]
struct CallBuffers {
    request: Vec<u8>,
    workspace: Workspace,
    /// The ORB whose objects the workspace knows.
    epoch: u64,
}

/// The most memory that is kept for the next call. More is freed.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Serves a request on the calling thread, and has it read its reply.
///
/// # Errors
/// IMP_LIMIT if this thread is in `Limits::collocated_depth_max` such calls; the exceptions of the request.
pub(crate) fn serve(
    orb: &ServerCore,
    request: &mut dyn CollocatedRequest,
) -> Result<Outcome, SystemException> {
    let _nesting = Nesting::enter(orb.limits.collocated_depth_max).ok_or(TOO_DEEP)?;
    let mut buffers = CallBuffers::take(orb);
    let answered = buffers.serve(orb, request);
    buffers.keep();
    answered
}

/// A collocated call in progress on this thread.
pub(super) struct Nesting;

impl Nesting {
    /// Counts a call; `None` if `depth_max` are in progress.
    #[inline]
    pub(super) fn enter(depth_max: usize) -> Option<Self> {
        // Short closures: a longer one would be a function of its own.
        let calls = THREAD.with(|thread| thread.collocated_calls.get());
        if calls >= depth_max {
            return None;
        }
        THREAD.with(|thread| thread.collocated_calls.set(calls + 1));
        Some(Self)
    }
}

impl Drop for Nesting {
    #[inline]
    fn drop(&mut self) {
        THREAD.with(|thread| thread.collocated_calls.update(|calls| calls - 1));
    }
}

/// The exception of a call within too many others.
const TOO_DEEP: SystemException = SystemException::new(
    ExceptionKind::ImpLimit,
    COLLOCATED_DEPTH,
    CompletionStatus::No,
);

impl CallBuffers {
    /// Takes the idle buffers that this thread used last for that ORB; without such, any idle ones.
    #[inline]
    fn take(orb: &ServerCore) -> Box<Self> {
        let idle = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            let last = idle.len().checked_sub(1)?;
            let used_last = idle.iter().rposition(|buffers| buffers.epoch == orb.epoch);
            Some(idle.swap_remove(used_last.unwrap_or(last)))
        });
        // A thread that calls from a destructor while it ends has none any more.
        let Some(mut buffers) = idle.ok().flatten() else {
            return Self::new(orb);
        };
        if buffers.epoch != orb.epoch {
            buffers.epoch = orb.epoch;
            buffers.workspace.names = NameCache::default();
        }
        buffers.workspace.priority = ThreadPriority::of_caller(&orb.rt);
        buffers
    }

    #[cold]
    fn new(orb: &ServerCore) -> Box<Self> {
        Box::new(Self {
            request: Vec::new(),
            workspace: Workspace::new(ThreadPriority::of_caller(&orb.rt)),
            epoch: orb.epoch,
        })
    }

    /// Keeps the buffers for the next call.
    #[inline]
    fn keep(mut self: Box<Self>) {
        for buffer in [&mut self.request, &mut self.workspace.out] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        // If the thread is ending, they are freed.
        let _ = IDLE.try_with(|idle| idle.borrow_mut().push(self));
    }

    #[inline]
    fn serve(
        &mut self,
        orb: &ServerCore,
        request: &mut dyn CollocatedRequest,
    ) -> Result<Outcome, SystemException> {
        let request_len = request.write(&mut self.request)?;
        let char_code_set = request.char_code_set();
        let workspace = &mut self.workspace;
        let mut len = answer(orb, &self.request[..request_len], char_code_set, workspace)?;
        if len == 0 {
            let again = |workspace: &mut Workspace| {
                Ok(answer(
                    orb,
                    &self.request[..request_len],
                    char_code_set,
                    workspace,
                )?)
            };
            len = await_reply(orb, request, workspace, again)?;
        }
        request.read(&workspace.out[..len])
    }
}

/// Waits, on the calling thread and with its priority, until the deadline of the call, or for a deferred reply that of the operation: while a manager holds the request, which is then served
/// `again`, and for a reply that the servant has deferred. Returns the length of the reply.
#[cold]
#[inline(never)]
fn await_reply(
    orb: &ServerCore,
    request: &mut dyn CollocatedRequest,
    workspace: &mut Workspace,
    again: impl Fn(&mut Workspace) -> Result<usize, SystemException>,
) -> Result<usize, SystemException> {
    let deadline = request.deadline();
    let deadline_ns = deadline.at_ns().unwrap_or(u64::MAX);
    while let Some(hold) = workspace.scratch.held_by.take() {
        if !orb.held.wait(&hold, deadline_ns)? {
            return Err(request.timed_out(deadline));
        }
        let len = again(workspace)?;
        if len != 0 {
            return Ok(len);
        }
    }
    let Workspace { out, scratch, .. } = workspace;
    let deferred = scratch.take_deferred();
    let (AwaitedReply { id, end_ns }, caller) = deferred.ok_or(local::CONTRADICTION)?;
    let mut len = caller.wait(out, deadline_ns.min(end_ns));
    if len.is_none() && !orb.deferred.give_up(id) {
        // It is being written now.
        len = caller.wait(out, u64::MAX);
    }
    match len {
        None if end_ns < deadline_ns => {
            orb.deferred.note_expired();
            Err(NOT_ANSWERED_IN_TIME)
        }
        None => Err(request.timed_out(deadline)),
        Some(0) => Err(NOT_ANSWERED),
        Some(len) => Ok(len),
    }
}

/// Serves a request that this ORB has written. Returns the length of the reply, which is in `workspace.out`.
#[inline]
fn answer(
    orb: &ServerCore,
    bytes: &[u8],
    char_code_set: CharCodeSet,
    workspace: &mut Workspace,
) -> Result<usize, DecodeError> {
    let bytes_max = orb.limits.message_bytes_max;
    let header = Header::parse(bytes, bytes_max)?.ok_or(DecodeError::BadMagic)?;
    let message = Message { header, bytes };
    let mut reader = message.reader().with_context(&orb.client);
    let request = RequestHeader::decode(&mut reader)?;
    let arguments = reader.with_char_code_set(char_code_set);
    let origin = RequestOrigin {
        orb,
        session: None,
        version: header.version,
        char_code_set,
        arrived_ns: 0,
    };
    Ok(upcall::serve_collocated(
        &request, arguments, origin, workspace,
    ))
}

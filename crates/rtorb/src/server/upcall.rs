//! Serves a request: finds the object, sets the priority, calls the servant, and sends the reply.

use super::call::{OrbResponder, RecordedAs, ReplyOutcome, RequestOrigin, ServerCall};
use super::held_requests::Hold;
use super::reading::Next;
use super::session::Session;
use super::target;
use super::thread_priority::{CallPriorities, ThreadPriority};
use super::workspace::Workspace;
use super::{cancellation, held_requests, intercepted};
use crate::distributable;
use crate::exception::{CompletionStatus, SystemException, local};
use crate::realtime::{
    CallPriority, NativePriority, Priority, RtCore, ThreadpoolId, UpcallPriority,
};
use crate::recorder::{
    self, BegunCopy, BegunRequest, CallNote, CallOutcome, CallSide, ServedCall, ThreadPart, UNNAMED,
};
use crate::server::{ActiveObject, NameCache, ServerCore};
use crate::thread_state::{self, NO_UPCALL, THREAD};
use rtorb_core::upcall::Upcall;
use rtorb_core::{Described, Intervention, Reply, ReplyEnding, ReplyState};
use rtorb_os::slab::SlabGuard;
use rtorb_wire::giop::{DISTRIBUTABLE_THREAD, RequestHeader, Response, contexts};
use rtorb_wire::{Encode, Reader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Returns true if the calling thread is in a servant of that ORB. There it must not wait for another request of the same ORB.
pub(crate) fn is_in_upcall(orb: &ServerCore) -> bool {
    current() >> 32 == orb.upcall >> 32
}

/// Returns true if the calling thread is in a servant of any ORB.
pub(crate) fn is_in_servant() -> bool {
    current() != NO_UPCALL
}

/// Returns the ORB whose servant the calling thread executes, in the upper half, and the number of the connection.
#[inline]
fn current() -> u64 {
    THREAD.with(|thread| thread.upcall.get())
}

/// Returns true if the client has cancelled the call that the calling thread executes.
pub(super) fn is_cancelled() -> bool {
    match current() as u32 {
        NO_CONNECTION => false,
        number => cancellation::is_cancelled(number),
    }
}

/// The number of the connection of a collocated call.
const NO_CONNECTION: u32 = 0;

/// The callers of [`serve`]. Each has a copy of its code: shared code is not inlined, which costs 60 to 200 instructions a call.
pub(crate) mod site {
    /// A thread that serves one connection.
    pub(crate) const CONNECTION: u8 = 0;
    /// A thread of a lane, which serves the request where it reads it.
    pub(crate) const LANE: u8 = 1;
    /// A thread that serves requests that were taken out.
    pub(crate) const TAKEN: u8 = 2;
    /// The thread of a collocated client.
    pub(crate) const COLLOCATED: u8 = 3;
    /// Requests that interceptors see, or that a distributable thread makes; on any thread.
    pub(crate) const RARE: u8 = 4;
    /// Any thread that records its calls.
    pub(crate) const RECORDED: u8 = 5;
}

/// Serves one request: calls the servant and sends the reply.
// Always: it is in the path of every call, and its other callers are rare.
#[inline(always)]
pub(super) fn serve<'m, const SITE: u8>(
    request: &RequestHeader<'m>,
    arguments: Reader<'m>,
    origin: RequestOrigin<'m>,
    workspace: &'m mut Workspace,
) -> Next {
    if let Some(part) = thread_state::recorder() {
        return if SITE == site::RARE {
            serve_recorded::<{ site::RARE }>(part, request, arguments, origin, workspace)
        } else {
            serve_recorded::<{ site::RECORDED }>(part, request, arguments, origin, workspace)
        };
    }
    serve_request::<SITE>(request, arguments, origin, workspace, false, |_, _| {})
}

/// Serves one request, and records it.
#[inline(never)]
fn serve_recorded<'m, const SITE: u8>(
    part: &ThreadPart,
    request: &RequestHeader<'m>,
    arguments: Reader<'m>,
    origin: RequestOrigin<'m>,
    workspace: &'m mut Workspace,
) -> Next {
    if let Some(copy) = recorder::begin_copy(part.number()) {
        return serve_copied(part, &copy, request, arguments, origin, workspace);
    }
    let begun = part.begin(origin.arrived_ns);
    serve_request::<SITE>(request, arguments, origin, workspace, false, |reply, _| {
        record(part, &begun, request, reply);
    })
}

/// Serves one request, records it, and copies its messages for the reader of calls.
#[cold]
#[inline(never)]
fn serve_copied<'m>(
    part: &ThreadPart,
    copy: &BegunCopy,
    request: &RequestHeader<'m>,
    mut arguments: Reader<'m>,
    origin: RequestOrigin<'m>,
    workspace: &'m mut Workspace,
) -> Next {
    let begun = part.begin(origin.arrived_ns);
    // Now: a servant may read a long run of bytes out of the middle.
    let message = arguments.whole().ok();
    let ended = |reply: &Reply<'m, OrbResponder<'m>>, names: &mut NameCache| {
        record(part, &begun, request, reply);
        if reply.responder.recorded != RecordedAs::Held {
            copy_call(copy, message, request, reply, names);
        }
    };
    serve_request::<{ site::RARE }>(request, arguments, origin, workspace, true, ended)
}

/// Copies a request that was served, and its reply.
fn copy_call(
    copy: &BegunCopy,
    message: Option<&[u8]>,
    request: &RequestHeader<'_>,
    reply: &Reply<'_, OrbResponder<'_>>,
    names: &mut NameCache,
) {
    let responder = &reply.responder;
    let key = request.target.object_key();
    let object = key
        .ok()
        .and_then(|key| target::find_existing(responder.orb, key, names));
    copy.end(&ServedCall {
        repository_id: object
            .as_ref()
            .map_or("", |object| object.servant.repository_id()),
        request: message,
        reply: responder.kept_reply(),
        is_deferred: is_deferred(request, reply),
        priority: thread_state::scheduling().priority(),
        code_sets: responder.session.and_then(Session::code_sets),
    });
}

/// Serves one request, and calls `ended` with its reply, which stays in the buffer if `keeps_reply` says so.
// Always: each site has code of its own.
#[inline(always)]
fn serve_request<'m, const SITE: u8>(
    request: &RequestHeader<'m>,
    arguments: Reader<'m>,
    origin: RequestOrigin<'m>,
    workspace: &'m mut Workspace,
    keeps_reply: bool,
    ended: impl FnOnce(&Reply<'m, OrbResponder<'m>>, &mut NameCache),
) -> Next {
    cancellation::note_request(request.request_id);
    let mut reply = origin.reply(request, &mut workspace.out, &mut workspace.scratch);
    reply.responder.keeps_reply |= keeps_reply;
    let mut call = ServerCall::new(arguments, reply);
    let (names, thread) = (&mut workspace.names, &mut workspace.priority);
    answer::<SITE>(request, &mut call, names, thread);
    if let Some(session) = origin.session
        && call.reply.state != ReplyState::Sent
    {
        session.note_answered();
    }
    ended(&call.reply, names);
    match call.reply.responder.outcome {
        ReplyOutcome::Usual => Next::Done,
        outcome => end_early_or_broken(outcome, origin.session),
    }
}

/// Records a request that was served.
#[inline(always)]
fn record(
    part: &ThreadPart,
    begun: &BegunRequest,
    request: &RequestHeader<'_>,
    reply: &Reply<'_, OrbResponder<'_>>,
) {
    let operation = match reply.responder.recorded {
        RecordedAs::Named => request.operation,
        RecordedAs::Unnamed => UNNAMED,
        RecordedAs::Held => return,
    };
    let note = CallNote {
        side: CallSide::Server,
        outcome: if is_deferred(request, reply) {
            CallOutcome::Deferred
        } else {
            reply.responder.ending
        },
        operation,
        priority: thread_state::scheduling().priority(),
        request_id: request.request_id,
        connection: reply
            .responder
            .session
            .map_or(0, |session| session.stream.identity()),
    };
    part.served(&note, begun);
}

/// Returns true if another thread sends the reply later.
#[inline(always)]
fn is_deferred(request: &RequestHeader<'_>, reply: &Reply<'_, OrbResponder<'_>>) -> bool {
    request.response == Response::FromTarget && reply.state != ReplyState::Sent
}

/// Ends a request whose reply was early, or could not be sent.
#[cold]
fn end_early_or_broken(outcome: ReplyOutcome, session: Option<&Session>) -> Next {
    if let Some(session) = session {
        session.state.note_executed();
    }
    if outcome == ReplyOutcome::Broken {
        return Next::Over;
    }
    Next::Done
}

/// Serves a collocated request on the calling thread. Returns the length of the reply, which is in `workspace.out`.
pub(super) fn serve_collocated<'m>(
    request: &RequestHeader<'m>,
    arguments: Reader<'m>,
    origin: RequestOrigin<'m>,
    workspace: &'m mut Workspace,
) -> usize {
    let reply = origin.reply(request, &mut workspace.out, &mut workspace.scratch);
    let mut call = ServerCall::new(arguments, reply);
    let (names, thread) = (&mut workspace.names, &mut workspace.priority);
    answer::<{ site::COLLOCATED }>(request, &mut call, names, thread);
    call.reply.responder.bytes
}

/// Calls the servant and sends the reply.
#[inline(always)]
fn answer<'m, const SITE: u8>(
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    names: &mut NameCache,
    thread: &mut ThreadPriority,
) {
    let orb = call.reply.responder.orb;
    if SITE == site::RARE || !request.contexts.is_empty() && is_rare(request, orb) {
        return answer_rare(request, call, names, thread);
    }
    let mut upcall = OrbUpcall::<SITE> { orb, names, thread };
    if let Err(exception) = rtorb_core::upcall::serve(&mut upcall, request, call) {
        call.reply.send_exception(&exception);
    }
}

/// Returns true if interceptors see the request, which has service contexts, or if a distributable thread makes it. A collocated request
/// of an ORB with interceptors always has contexts.
#[cold]
fn is_rare(request: &RequestHeader<'_>, orb: &ServerCore) -> bool {
    orb.has_interceptors() || is_of_thread(request)
}

/// Returns true if a distributable thread makes the request.
fn is_of_thread(request: &RequestHeader<'_>) -> bool {
    request.contexts.find(DISTRIBUTABLE_THREAD).is_some()
}

/// Calls the interceptors, the servant and the interceptors again, and sends the reply.
#[cold]
#[inline(never)]
fn answer_rare<'m>(
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    names: &mut NameCache,
    thread: &mut ThreadPriority,
) {
    if let Err(exception) = serve_rare(request, call, names, thread) {
        call.reply.send_exception(&exception);
    }
    if call.reply.responder.orb.has_interceptors() {
        intercepted::finish(&mut call.reply.responder);
    }
}

fn serve_rare<'m>(
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    names: &mut NameCache,
    thread: &mut ThreadPriority,
) -> Result<(), SystemException> {
    let orb = call.reply.responder.orb;
    if orb.held.is_used() && !held_requests::admit_known(request, call, names)? {
        // Interceptors see it, and its distributable thread visits the servant, when it is served.
        return Ok(());
    }
    if orb.has_interceptors() && !intercepted::begin(request, call, names)? {
        return Ok(());
    }
    if is_of_thread(request) {
        return serve_in_thread(request, call, names, thread);
    }
    let mut upcall = OrbUpcall::<{ site::RARE }> { orb, names, thread };
    rtorb_core::upcall::serve(&mut upcall, request, call)
}

/// Calls the servant as the distributable thread of the request.
#[cold]
fn serve_in_thread<'m>(
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    names: &mut NameCache,
    thread: &mut ThreadPriority,
) -> Result<(), SystemException> {
    let OrbResponder { orb, session, .. } = call.reply.responder;
    let id = request.request_id;
    let origin = session.map(|session| session.origin(id));
    let _adopted = distributable::adopt(request.contexts, origin)?;
    if session.is_some_and(|session| session.cancelled.forget(id)) {
        return Err(local::THREAD_CANCELLED);
    }
    let watch = session.map(Session::watch_client);
    let mut upcall = OrbUpcall::<{ site::RARE }> { orb, names, thread };
    let served = rtorb_core::upcall::serve(&mut upcall, request, call);
    drop(watch);
    if let Some(session) = session {
        // It is not for the next request with this id.
        session.cancelled.forget(id);
    }
    served
}

/// The upcall of one request. Each `SITE` has code of its own.
struct OrbUpcall<'m, 'w, const SITE: u8> {
    orb: &'m ServerCore,
    names: &'w mut NameCache,
    thread: &'w mut ThreadPriority,
}

impl<'m, const SITE: u8> Upcall<'m> for OrbUpcall<'m, '_, SITE> {
    type Responder = OrbResponder<'m>;
    type Object = SlabGuard<'m, ActiveObject>;

    #[inline(always)]
    fn find(&mut self, key: &[u8]) -> Option<Self::Object> {
        target::find(self.orb, key, self.names)
    }

    #[inline(always)]
    fn missing(&self, request: &RequestHeader<'m>) -> SystemException {
        target::missing(self.orb, request)
    }

    fn servant<'o>(&self, object: &'o Self::Object) -> &'o dyn Described {
        &*object.servant
    }

    fn check_presence(&self, object: &Self::Object) -> Result<(), Intervention> {
        object.servant.check_presence(&self.names.id)
    }

    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    fn call(
        &mut self,
        object: Self::Object,
        request: &RequestHeader<'m>,
        call: &mut ServerCall<'m>,
    ) -> Result<(), SystemException> {
        let session = call.reply.responder.session;
        let pool = session.map_or(ThreadpoolId::OWN, |session| session.pool);
        if target::is_served_elsewhere(&object, pool, self.thread) {
            return forward(object, request, call);
        }
        if !object.manager.is_active() {
            return serve_admitted(object, request, call, self.names, self.thread);
        }
        self.execute(object, request, call)
    }
}

impl<'m, const SITE: u8> OrbUpcall<'m, '_, SITE> {
    /// Gives the thread the priority of an admitted call, and calls the servant, which replies.
    // Always: it is in the path of every call, and its other caller is rare.
    #[inline(always)]
    fn execute(
        &mut self,
        object: SlabGuard<'m, ActiveObject>,
        request: &RequestHeader<'m>,
        call: &mut ServerCall<'m>,
    ) -> Result<(), SystemException> {
        let (orb, session) = (self.orb, call.reply.responder.session);
        let upcall = session.map_or(orb.upcall, Session::upcall);
        let running = begin(&orb.rt, &object, request, call, self.thread)?;
        if SITE == site::RARE && orb.has_interceptors() {
            // Beside the priority.
            call.reply.note_intercepted();
        }
        // Not before: after an early reply, the client cannot be forwarded any more.
        if call.reply.response == Response::BeforeInvocation && !object.servant.is_locator() {
            call.reply_early(&*object.servant);
        }
        let (lent, id) = (&mut *call, &self.names.id);
        let answered = in_servant(upcall, || {
            object.servant.dispatch(request.operation, lent, id)
        })
        .flatten();
        if let Err(exception) = answered {
            // Still at the priority of the call, as its results are.
            call.reply.send_exception(&exception);
        }
        drop(object);
        if let Some(timing) = call.reply.responder.timing.take()
            && !timing.end(&orb.timing, &orb.rt)
        {
            self.thread.note_changed();
        }
        self.thread.end(&orb.rt, running);
        Ok(())
    }
}

/// Serves a request whose object's manager is not active, unless it is held.
///
/// # Errors
/// Those of [`held_requests::admit`]; OBJECT_NOT_EXIST if the object has ended meanwhile; those of the call.
#[cold]
#[inline(never)]
fn serve_admitted<'m>(
    object: SlabGuard<'m, ActiveObject>,
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    names: &mut NameCache,
    thread: &mut ThreadPriority,
) -> Result<(), SystemException> {
    let OrbResponder { orb, session, .. } = call.reply.responder;
    drop(object);
    let pool = session.map_or(ThreadpoolId::OWN, |session| session.pool);
    let key = request.target.object_key()?;
    loop {
        let releases = orb.held.releases();
        let object = target::find(orb, key, names).ok_or_else(|| target::missing(orb, request))?;
        if target::is_served_elsewhere(&object, pool, thread) {
            return forward(object, request, call);
        }
        if object.manager.is_active() {
            let mut upcall = OrbUpcall::<{ site::RARE }> { orb, names, thread };
            return upcall.execute(object, request, call);
        }
        let manager = Arc::clone(&object.manager);
        drop(object);
        let hold = Hold { manager, releases };
        if !held_requests::admit(hold, request.request_id, call)? {
            return Ok(());
        }
    }
}

/// Drops an object that was deactivated while a thread used it. Its servant may panic then.
pub(super) fn drop_removed(upcall: u64, object: ActiveObject) {
    let _ = in_servant(upcall, || drop(object));
}

/// Runs a servant on the calling thread. `upcall` has the numbers of the ORB and of the connection.
///
/// # Errors
/// UNKNOWN, COMPLETED_MAYBE, if it panics.
#[inline(always)]
pub(super) fn in_servant<T>(upcall: u64, run: impl FnOnce() -> T) -> Result<T, SystemException> {
    let inside = InServant::enter(upcall);
    let ran = catch_unwind(AssertUnwindSafe(run));
    drop(inside);
    // No default is built and dropped in calls without a panic: that costs 20 instructions.
    match ran {
        Ok(result) => Ok(result),
        Err(_panic) => Err(FAILED),
    }
}

/// The calling thread executes a servant until this is dropped.
pub(super) struct InServant {
    /// What it executed before.
    around: u64,
}

impl InServant {
    /// Notes that the calling thread executes a servant. `upcall` has the numbers of the ORB and of the connection.
    #[inline(always)]
    pub(super) fn enter(upcall: u64) -> Self {
        Self {
            around: THREAD.with(|thread| thread.upcall.replace(upcall)),
        }
    }
}

impl Drop for InServant {
    #[inline(always)]
    fn drop(&mut self) {
        THREAD.with(|thread| thread.upcall.set(self.around));
    }
}

/// The exception of a request whose servant panics; other requests are not affected.
pub(super) const FAILED: SystemException =
    local::SERVANT_PANICKED.with_completion(CompletionStatus::Maybe);

/// Gives the thread the priority of the call, by the object's priority model.
// Always: it is in the path of every call.
#[inline(always)]
fn begin<'m>(
    rt: &RtCore,
    object: &ActiveObject,
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    thread: &mut ThreadPriority,
) -> Result<UpcallPriority, SystemException> {
    if thread.has_priority() {
        return thread.begin_unprioritised(rt);
    }
    let called = match &object.priority {
        CallPriority::AsItIs => return thread.begin_unprioritised(rt),
        CallPriority::Declared(declared) => {
            let (priority, native) = declared.get();
            let inbound = rt.inbound(priority, &object.id)?;
            CallPriorities {
                priority: inbound,
                native: native_of(rt, inbound, Some((priority, native)))?,
            }
        }
        CallPriority::Propagated { otherwise } => {
            let told = propagated(request)?;
            let priority = told.map_or_else(|| otherwise.get(), |(priority, _)| priority);
            let priority = rt.inbound(priority, &object.id)?;
            let native = native_of(rt, priority, None)?;
            call.reply.priority = told.map(|(_, data)| data);
            CallPriorities { priority, native }
        }
    };
    thread.begin(rt, called)
}

/// Returns the priority in a request's service context, with the context's data; `None` without such a context.
///
/// # Errors
/// DATA_CONVERSION 2 for a negative priority (as TAO 2.2.1); MARSHAL for malformed data.
#[inline]
//= RT-CORBA 1.2 §Real-Time CORBA Priority Models
//# With CLIENT_PROPAGATED a request carries the priority of the client, at which the server executes it.
pub(crate) fn propagated<'m>(
    request: &RequestHeader<'m>,
) -> Result<Option<(Priority, &'m [u8])>, SystemException> {
    if request.contexts.is_empty() {
        return Ok(None);
    }
    let Some(data) = request.contexts.find(contexts::RT_CORBA_PRIORITY) else {
        return Ok(None);
    };
    let priority =
        Priority::new(contexts::decode_priority(data)?).map_err(|_| local::UNMAPPED_PRIORITY)?;
    // Bytes behind the priority have no meaning, and are not sent back.
    let data = data.get(..contexts::PRIORITY_BYTES).unwrap_or(data);
    Ok(Some((priority, data)))
}

/// Returns the native priority of a call. `known` saves the mapping if it is that of the same priority.
#[inline]
fn native_of(
    rt: &RtCore,
    priority: Priority,
    known: Option<(Priority, NativePriority)>,
) -> Result<NativePriority, SystemException> {
    match known {
        Some((same, native)) if same == priority => Ok(native),
        _ => rt.to_native(priority),
    }
}

/// Forwards a client to the endpoints of the pool that serves the object, because it called an endpoint of another pool.
#[cold]
fn forward(
    object: SlabGuard<'_, ActiveObject>,
    request: &RequestHeader<'_>,
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    let key = request.target.object_key()?;
    let ior = object.adapter.forward(&object, key);
    drop(object);
    call.reply
        .respond(ReplyEnding::Forward(&ior), |w| ior.encode(w))
}

//! The replies that the servants of an ORB have deferred: a bounded number, each with memory that later ones use again.
//!
//! `expiry` answers the calls whose deadlines pass.

mod expiry;

use super::call::{OrbResponder, RequestOrigin, Scratch, ServerCall};
use super::intercepted;
use super::server_core::ServerCore;
use super::session::Session;
use crate::deadline::NONE_NS;
use crate::exception::{CompletionStatus, SystemException, local};
use crate::interceptors::ServerInterception;
use crate::limits::Limits;
use crate::timing::DeferredCall;
use crate::wait::wake_tasks;
use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};
use rtorb_core::ReplyState;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{RequestHeader, Response, Version, contexts};
use rtorb_wire::{Reader, Writer};
use rustix::io::Errno;
use std::sync::Arc;

/// The deferred replies of an ORB since it was built. They are not an atomic snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeferredReplyCounts {
    /// Replies that are deferred now.
    pub outstanding: u64,
    /// Responders that were dropped without an answer. Their clients got NO_RESPONSE.
    pub dropped: u64,
    /// Answers that did not reach a client: its connection had ended, a caller in the same ORB had given the call up, the ORB had
    /// answered because the deadline had passed, or the ORB had ended before.
    pub undelivered: u64,
    /// Calls whose deadlines passed before anybody answered. The ORB has answered them with TIMEOUT.
    pub expired: u64,
}

/// The places of the deferred replies of an ORB. An empty table takes no memory.
#[derive(Debug)]
pub(crate) struct DeferredReplies {
    replies_max: usize,
    replies_per_connection_max: usize,
    dropped: AtomicU64,
    undelivered: AtomicU64,
    expired: AtomicU64,
    places: Mutex<ReplyPlaces>,
}

#[derive(Debug)]
struct ReplyPlaces {
    /// Each place that was ever used.
    all: Vec<ReplyPlace>,
    /// Free places, the most recently freed last.
    free: Vec<usize>,
    /// The time of the watchdog's next look; [`NONE_NS`] while it plans none.
    next_look_ns: u64,
}

#[derive(Debug, Default)]
struct ReplyPlace {
    /// How often the place was taken.
    uses: u64,
    /// `None` once the reply is being sent, and while the place is free.
    reply: Option<UnsentReply>,
    memory: ReplyMemory,
    demand: ReplyDemand,
    /// The task that is woken when nobody waits for the reply any more.
    waker: Option<Waker>,
}

/// Whether the answer of a servant is still wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReplyDemand {
    #[default]
    Awaited,
    /// The client has given the call up, or is gone. An answer is sent all the same.
    Cancelled,
    /// The deadline has passed. The ORB has answered, and the client has not taken that yet.
    Expired(TimeoutReply),
}

/// The ORB's own answer to a call whose deadline has passed. It is in the memory of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeoutReply {
    bytes: usize,
    /// When the connection ends if the client has not taken the answer.
    until_ns: u64,
}

/// The identity of a deferred reply in its ORB: no other one has ever had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyId {
    place: usize,
    use_number: u64,
}

/// A reply that was added to the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddedReply {
    pub(super) id: ReplyId,
    /// True if the watchdog has to look earlier than it would.
    pub(super) is_earlier: bool,
}

/// A deferred reply for which a caller in the same ORB waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitedReply {
    pub(super) id: ReplyId,
    /// When the ORB ends the call if nobody has answered; [`NONE_NS`] if it does not.
    pub(super) end_ns: u64,
}

/// What is needed to send a deferred reply, but for its contents.
#[derive(Debug)]
pub(super) struct UnsentReply {
    pub(super) destination: ReplyDestination,
    pub(super) request_id: u32,
    pub(super) version: Version,
    pub(super) char_code_set: CharCodeSet,
    /// The data of the request's RTCorbaPriority, which the reply repeats.
    pub(super) priority: Option<[u8; contexts::PRIORITY_BYTES]>,
    /// The code point that the operation states.
    pub(super) dscp: Option<u8>,
    /// Whether interceptors see it.
    pub(super) state: ReplyState,
    /// Judges the response, if the operation is annotated.
    pub(super) judge: Option<ResponseJudge>,
    /// When the watchdog acts on it; [`NONE_NS`] if it does not.
    pub(super) deadline_ns: u64,
}

/// Counts the response of an annotated call.
#[derive(Debug)]
pub(super) struct ResponseJudge {
    pub(super) orb: Arc<ServerCore>,
    pub(super) call: DeferredCall,
}

/// Where a deferred reply goes.
#[derive(Debug)]
pub(super) enum ReplyDestination {
    Connection(Arc<Session>),
    /// A caller in the same ORB.
    Caller(Arc<CallerWait>),
}

/// A caller in the same ORB that waits for a deferred reply.
#[derive(Debug, Default)]
pub(super) struct CallerWait {
    state: Mutex<CallerState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CallerState {
    /// The reply, or memory of an earlier one.
    buffer: Vec<u8>,
    /// The length of the reply: `None` until it is ready, 0 if there will be none.
    bytes: Option<usize>,
}

/// The memory in which a reply is written.
#[derive(Debug, Default)]
struct ReplyMemory {
    out: Vec<u8>,
    scratch: Scratch,
}

/// The most memory that is kept for the next reply. More is freed.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The exception of a call that its servant gives up.
pub(super) const NOT_ANSWERED: SystemException =
    local::NOT_ANSWERED.with_completion(CompletionStatus::Maybe);

/// The exception of a call that nobody has answered in time.
pub(super) const NOT_ANSWERED_IN_TIME: SystemException =
    local::NOT_ANSWERED_IN_TIME.with_completion(CompletionStatus::Maybe);

impl DeferredReplies {
    /// Makes an empty table.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            replies_max: limits.deferred_replies_max,
            replies_per_connection_max: limits.deferred_replies_per_connection_max,
            dropped: AtomicU64::new(0),
            undelivered: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            places: Mutex::new(ReplyPlaces {
                all: Vec::new(),
                free: Vec::new(),
                next_look_ns: NONE_NS,
            }),
        }
    }

    /// Defers a reply, with its interception if there is one.
    ///
    /// # Errors
    /// TRANSIENT if the table is full, or as many replies of the connection are deferred as may be.
    pub(super) fn add(
        &self,
        reply: UnsentReply,
        interception: &mut Option<Box<ServerInterception>>,
    ) -> Result<AddedReply, SystemException> {
        let session = match &reply.destination {
            ReplyDestination::Connection(session) => Some(Arc::clone(session)),
            ReplyDestination::Caller(_) => None,
        };
        // Before another thread can send it.
        if let Some(session) = &session
            && !session.note_deferred(self.replies_per_connection_max)
        {
            return Err(local::CONNECTION_REPLIES_FULL);
        }
        let request_id = reply.request_id;
        let added = self.place(reply, interception);
        match (added, session) {
            (None, Some(session)) => session.note_settled(),
            // Its CancelRequest, or the end of its connection, came before it was in the table.
            (Some(added), Some(session))
                if session.cancelled.forget(request_id) || session.has_lost_client() =>
            {
                self.note_cancelled(added.id);
            }
            _ => {}
        }
        added.ok_or(local::REPLIES_FULL)
    }

    /// Notes that nobody awaits a reply. Its servant has no responder yet, so no task waits. The end of the ORB may have taken it meanwhile.
    fn note_cancelled(&self, id: ReplyId) {
        if let Some(place) = self.places.lock().of(id) {
            place.cancel();
        }
    }

    fn place(
        &self,
        reply: UnsentReply,
        interception: &mut Option<Box<ServerInterception>>,
    ) -> Option<AddedReply> {
        let mut places = self.places.lock();
        let deadline_ns = reply.deadline_ns;
        let number = match places.free.pop() {
            Some(used) => used,
            None if places.all.len() < self.replies_max => {
                places.all.push(ReplyPlace::default());
                places.all.len() - 1
            }
            None => {
                drop(places);
                // The connection may end with it: not under the lock.
                drop(reply);
                return None;
            }
        };
        let place = &mut places.all[number];
        place.uses += 1;
        if reply.state == ReplyState::Intercepted {
            // The thread gets the memory of an earlier one.
            mem::swap(&mut place.memory.scratch.interception, interception);
        }
        place.reply = Some(reply);
        place.demand = ReplyDemand::Awaited;
        let id = ReplyId {
            place: number,
            use_number: place.uses,
        };
        let is_earlier = places.plan_look(deadline_ns);
        Some(AddedReply { id, is_earlier })
    }

    /// Takes a reply to send it; `None` if it was [revoked](Self::revoke) or [given up](Self::give_up), or its deadline has passed.
    fn take(&self, id: ReplyId) -> Option<TakenReply<'_>> {
        let mut places = self.places.lock();
        let place = places.of(id)?;
        if let ReplyDemand::Expired(_) = place.demand {
            return None;
        }
        self.take_from(&mut places, id.place)
    }

    /// Takes the reply of a place; `None` if there is none that is unsent.
    fn take_from(&self, places: &mut ReplyPlaces, number: usize) -> Option<TakenReply<'_>> {
        let place = &mut places.all[number];
        Some(TakenReply {
            reply: Some(place.reply.take()?),
            timeout: match place.demand {
                ReplyDemand::Expired(timeout) => Some(timeout),
                ReplyDemand::Awaited | ReplyDemand::Cancelled => None,
            },
            waker: place.waker.take(),
            memory: mem::take(&mut place.memory),
            table: self,
            number,
        })
    }

    /// Sends the reply that `write` writes, or the exception that it returns.
    pub(super) fn send(
        &self,
        orb: &ServerCore,
        id: ReplyId,
        write: impl FnOnce(&mut ServerCall<'_>) -> Result<(), SystemException>,
    ) {
        let is_sent = self.take(id).is_some_and(|taken| taken.send(orb, write));
        if !is_sent {
            self.undelivered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends NO_RESPONSE because the responder was dropped without an answer. Does nothing if the call has ended.
    pub(super) fn drop_unanswered(&self, orb: &ServerCore, id: ReplyId) {
        if let Some(taken) = self.take(id) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            taken.send(orb, |_| Err(NOT_ANSWERED));
        }
    }

    /// Drops a reply that the client does not await any more, and wakes its task. Returns false if it is being sent.
    pub(super) fn give_up(&self, id: ReplyId) -> bool {
        let taken = self.take(id);
        let is_given_up = taken.is_some();
        let waker = taken.and_then(|mut taken| taken.waker.take());
        wake_tasks(waker);
        is_given_up
    }

    /// Returns true if the client has cancelled the call or is gone, its deadline has passed, or the reply was sent or given up.
    pub(super) fn is_cancelled(&self, id: ReplyId) -> bool {
        self.places.lock().all[id.place].is_cancelled(id)
    }

    /// Becomes ready once [the reply is not awaited](Self::is_cancelled), and wakes the task then.
    pub(super) fn poll_cancelled(&self, id: ReplyId, waker: &Waker) -> Poll<()> {
        // A waker is code of the application: it is neither copied nor dropped under the lock.
        let mut own = Some(waker.clone());
        let mut places = self.places.lock();
        let place = &mut places.all[id.place];
        if place.is_cancelled(id) {
            return Poll::Ready(());
        }
        mem::swap(&mut place.waker, &mut own);
        drop(places);
        Poll::Pending
    }

    /// Notes that a client has cancelled a request.
    #[cold]
    pub(super) fn cancel(&self, session: &Session, request_id: u32) {
        if !session.state.has_deferred() {
            return;
        }
        let mut places = self.places.lock();
        let mut all = places.all.iter_mut();
        let place = all.find(|place| {
            place
                .reply_to(session)
                .is_some_and(|reply| reply.request_id == request_id)
        });
        let waker = place.and_then(ReplyPlace::cancel);
        drop(places);
        wake_tasks(waker);
    }

    /// Notes that the client of a connection is gone, or has ended sending: its calls are cancelled. An answer is sent all the same.
    ///
    /// Call it behind the end of the connection: a reply that is deferred later is then noted by [`add`](Self::add).
    //= GIOP 1.2 §15.5.1.1
    //# When one end closes a connection, the other considers its pending requests cancelled.
    #[cold]
    pub(super) fn cancel_all(&self, session: &Session) {
        let mut places = self.places.lock();
        let all = places.all.iter_mut();
        let cancelled = all.filter(|place| place.reply_to(session).is_some());
        let wakers: Vec<Waker> = cancelled.filter_map(ReplyPlace::cancel).collect();
        drop(places);
        wake_tasks(wakers);
    }

    /// Sends NO_RESPONSE for each deferred reply of a connection that ends, or the TIMEOUT that its client has not taken. Its responders have
    /// nothing to answer then.
    #[cold]
    pub(super) fn revoke(&self, session: &Session) {
        let next = || {
            let mut places = self.places.lock();
            let mut all = places.all.iter();
            let number = all.position(|place| place.reply_to(session).is_some());
            self.take_from(&mut places, number?)
        };
        while let Some(mut taken) = next() {
            let waker = taken.waker.take();
            taken.send(&session.orb, |_| Err(NOT_ANSWERED));
            wake_tasks(waker);
        }
    }

    /// Counts a call that the ORB ends because its deadline has passed.
    pub(super) fn note_expired(&self) {
        self.expired.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> DeferredReplyCounts {
        let outstanding = {
            let places = self.places.lock();
            places.all.len() - places.free.len()
        };
        DeferredReplyCounts {
            outstanding: outstanding as u64,
            dropped: self.dropped.load(Ordering::Relaxed),
            undelivered: self.undelivered.load(Ordering::Relaxed),
            expired: self.expired.load(Ordering::Relaxed),
        }
    }
}

impl ReplyPlaces {
    /// Returns the place of a reply; `None` if another reply has it.
    fn of(&mut self, id: ReplyId) -> Option<&mut ReplyPlace> {
        let place = &mut self.all[id.place];
        (place.uses == id.use_number).then_some(place)
    }
}

impl ReplyPlace {
    /// Returns the unsent reply, if there is one and it goes over that connection.
    fn reply_to(&self, session: &Session) -> Option<&UnsentReply> {
        self.reply.as_ref().filter(|reply| reply.is_for(session))
    }

    /// Notes that nobody awaits the reply. Returns the task to wake.
    fn cancel(&mut self) -> Option<Waker> {
        if self.demand == ReplyDemand::Awaited {
            self.demand = ReplyDemand::Cancelled;
        }
        self.waker.take()
    }

    /// Returns true if the place has another reply or none, or nobody awaits the reply.
    fn is_cancelled(&self, id: ReplyId) -> bool {
        let is_awaited = self.demand == ReplyDemand::Awaited && self.reply.is_some();
        self.uses != id.use_number || !is_awaited
    }
}

impl UnsentReply {
    fn is_for(&self, session: &Session) -> bool {
        match &self.destination {
            ReplyDestination::Connection(own) => core::ptr::eq(&**own, session),
            ReplyDestination::Caller(_) => false,
        }
    }
}

/// A reply taken out to be sent. Dropping it frees its place.
struct TakenReply<'t> {
    /// `None` once it is back in its place.
    reply: Option<UnsentReply>,
    /// The answer of the ORB, if it is written.
    timeout: Option<TimeoutReply>,
    /// The task to wake if the reply is not awaited.
    waker: Option<Waker>,
    memory: ReplyMemory,
    table: &'t DeferredReplies,
    number: usize,
}

impl TakenReply<'_> {
    /// Sends the reply. Returns false if the client cannot get it.
    fn send(
        mut self,
        orb: &ServerCore,
        write: impl FnOnce(&mut ServerCall<'_>) -> Result<(), SystemException>,
    ) -> bool {
        let Some(reply) = &self.reply else {
            return false;
        };
        let bytes = match self.timeout {
            Some(timeout) => timeout.bytes,
            None => reply.write(&mut self.memory, orb, write),
        };
        let out = &mut self.memory.out;
        match &reply.destination {
            ReplyDestination::Caller(caller) => {
                caller.answer(out, bytes);
                true
            }
            ReplyDestination::Connection(session) => {
                let sent: Result<(), Errno> =
                    reply.send_to(session, out, bytes, Session::send_in_turn);
                sent.is_ok()
            }
        }
    }
}

impl UnsentReply {
    /// Has `send` send the reply that is in `out` over its connection.
    fn send_to<T>(
        &self,
        session: &Session,
        out: &mut Vec<u8>,
        bytes: usize,
        send: impl FnOnce(&Session, &Writer<'_>) -> T,
    ) -> T {
        if let Some(dscp) = self.dscp {
            // Without its marks a reply is later, and not wrong.
            let _ = session.mark(dscp);
        }
        let message = Writer::of_whole(mem::take(out), bytes);
        let sent = send(session, &message);
        *out = message.into_buffer();
        sent
    }

    /// Writes the reply into the memory of its place. Returns its length.
    fn write(
        &self,
        memory: &mut ReplyMemory,
        orb: &ServerCore,
        write: impl FnOnce(&mut ServerCall<'_>) -> Result<(), SystemException>,
    ) -> usize {
        let request = RequestHeader {
            request_id: self.request_id,
            response: Response::FromTarget,
            ..RequestHeader::EMPTY
        };
        // As a collocated reply, it stays in the buffer.
        let origin = RequestOrigin {
            orb,
            session: None,
            version: self.version,
            char_code_set: self.char_code_set,
            arrived_ns: 0,
        };
        let ReplyMemory { out, scratch } = memory;
        let mut reply = origin.reply(&request, out, scratch);
        reply.priority = self.priority.as_ref().map(|data| &data[..]);
        if self.state == ReplyState::Intercepted {
            reply.note_intercepted();
        }
        let arguments = Reader::new(&[], orb.byte_order);
        let mut call: ServerCall<'_> = rtorb_core::ServerCall::new(arguments, reply);
        if let Err(exception) = write(&mut call) {
            call.reply.send_exception(&exception);
        }
        let OrbResponder { bytes, .. } = call.reply.responder;
        bytes
    }
}

impl Drop for TakenReply<'_> {
    fn drop(&mut self) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        match &reply.destination {
            ReplyDestination::Connection(session) => session.note_settled(),
            ReplyDestination::Caller(caller) => caller.end(),
        }
        let mut memory = mem::take(&mut self.memory);
        if let Some(interception) = &mut memory.scratch.interception {
            intercepted::abandon(interception);
        }
        if memory.out.capacity() > KEPT_BYTES_MAX {
            memory.out = Vec::new();
        }
        let mut places = self.table.places.lock();
        places.all[self.number].memory = memory;
        places.free.push(self.number);
        drop(places);
        if let Some(ResponseJudge { orb, call }) = reply.judge {
            orb.timing.end_deferred(call, &orb.rt);
        }
    }
}

impl CallerWait {
    /// Forgets an earlier reply, but not its memory.
    pub(super) fn reset(&mut self) {
        self.state.get_mut().bytes = None;
    }

    /// Hands the reply over, and takes memory for it.
    fn answer(&self, reply: &mut Vec<u8>, bytes: usize) {
        let mut state = self.state.lock();
        mem::swap(&mut state.buffer, reply);
        state.bytes = Some(bytes);
    }

    /// Wakes the caller, if it waits.
    fn end(&self) {
        let mut state = self.state.lock();
        state.bytes.get_or_insert(0);
        drop(state);
        self.changed.notify_one(&self.state);
    }

    /// Waits for the reply, until `deadline_ns` at the latest, and exchanges it for `out`. Returns its length, 0 if there will be none; `None`
    /// after the deadline.
    pub(super) fn wait(&self, out: &mut Vec<u8>, deadline_ns: u64) -> Option<usize> {
        let mut state = self.state.lock();
        while state.bytes.is_none() {
            if deadline_ns == u64::MAX {
                self.changed.wait(&mut state);
            } else if !self.changed.wait_until(&mut state, deadline_ns) && state.bytes.is_none() {
                return None;
            }
        }
        mem::swap(&mut state.buffer, out);
        state.bytes.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsent() -> UnsentReply {
        UnsentReply {
            destination: ReplyDestination::Caller(Arc::default()),
            request_id: 2,
            version: Version::V1_2,
            char_code_set: CharCodeSet::default(),
            priority: None,
            dscp: None,
            state: ReplyState::Unsent,
            judge: None,
            deadline_ns: NONE_NS,
        }
    }

    #[test]
    fn a_note_for_a_reply_is_none_for_the_next_one_at_its_place() {
        let limits = Limits::with(|limits| limits.deferred_replies_max = 1);
        let table = DeferredReplies::new(&limits);
        let earlier = table.add(unsent(), &mut None).expect("room").id;
        assert!(table.give_up(earlier));
        let later = table.add(unsent(), &mut None).expect("room").id;
        assert_eq!(earlier.place, later.place);
        table.note_cancelled(earlier);
        assert!(!table.is_cancelled(later));
        table.note_cancelled(later);
        assert!(table.is_cancelled(later));
        assert!(table.give_up(later));
    }
}

//! Requests that wait because the manager of their adapter holds them (CORBA 3, 11.3.2.1), and those that a manager refuses.
//!
//! A held request is a copy in a bounded table of the ORB. Once its manager does not hold it any more, it is *due*: the event loop reports its
//! connection, and the thread that reads the connection serves it, or queues it, as a new request. So the threads and the priorities are those
//! of any request. A connection without an event loop has a thread of its own, which waits with the request; so does a thread that calls an
//! object of its own ORB.

use super::answer::TakenTimes;
use super::call::{OrbResponder, RecordedAs, ServerCall};
use super::manager_state::ManagerState;
use super::names::NameCache;
use super::object_key::ObjectKey;
use super::request::TakenRequest;
use super::server_core::ServerCore;
use super::session::Session;
use super::thread_priority::ThreadPriority;
use super::workspace::Workspace;
use crate::Limits;
use crate::clock::monotonic_ns;
use crate::deadline;
use crate::exception::{SystemException, local};
use crate::realtime::{NativePriority, undemoted_policy};
use core::cmp::Reverse;
use core::mem;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb_core::upcall::is_implicit;
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_wire::giop::{RequestHeader, Response};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The held requests of an ORB.
#[derive(Debug)]
pub(crate) struct HeldRequests {
    /// Set before a manager holds requests for the first time.
    is_used: AtomicBool,
    /// The number of [releases](HeldRequests::release). It changes under the lock of the table.
    releases: AtomicU32,
    table: Mutex<HeldTable>,
    /// Signalled with each release, and when the ORB stops.
    changed: Condvar,
}

#[derive(Debug)]
struct HeldTable {
    /// In the order of their arrival.
    requests: BoundedQueue<HeldRequest>,
    /// The ORB stops.
    is_closed: bool,
}

/// A request that waits. Its connection is not idle until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldRequest {
    session: Arc<Session>,
    manager: Arc<ManagerState>,
    request_id: u32,
    request: TakenRequest,
    /// The [urgency](urgency_here) of the thread that found it: so urgent are those that serve its connection.
    urgency: NativePriority,
    is_due: bool,
}

/// The manager of an object that a request has found, when it was not active.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(super) manager: Arc<ManagerState>,
    /// The number of [releases](HeldRequests::releases) before the object was looked up.
    pub(super) releases: u32,
}

/// Decides about a request whose manager is not active. Returns false if it is held: then nothing replies. Otherwise its object is to be looked
/// up again, because the thread may have waited.
///
/// # Errors
/// TRANSIENT 1 if the manager discards requests, or holds as many as it may; OBJ_ADAPTER 1 if it is inactive; TIMEOUT if the deadline
/// passes while the thread waits.
#[cold]
#[inline(never)]
pub(super) fn admit(
    hold: Hold,
    request_id: u32,
    call: &mut ServerCall<'_>,
) -> Result<bool, SystemException> {
    if !hold.manager.is_holding() {
        return hold.manager.refusal().map_or(Ok(true), Err);
    }
    let OrbResponder { orb, session, .. } = call.reply.responder;
    let is_admitted = match session {
        None => {
            // The caller waits, and has it served again.
            call.reply.responder.scratch.held_by = Some(hold);
            false
        }
        Some(session) if session.is_watched() => orb.held.hold(&hold, session, request_id, call)?,
        Some(_) => {
            if !orb.held.wait(&hold, deadline::inherited_ns())? {
                return Err(expired(orb));
            }
            true
        }
    };
    if !is_admitted {
        call.reply.response = Response::None;
        call.reply.responder.recorded = RecordedAs::Held;
    }
    Ok(is_admitted)
}

/// As [`admit`], before interceptors see the request and its distributable thread is noted. An adapter that does not exist yet holds nothing.
#[cold]
pub(super) fn admit_known(
    request: &RequestHeader<'_>,
    call: &mut ServerCall<'_>,
    names: &mut NameCache,
) -> Result<bool, SystemException> {
    if is_implicit(request.operation) {
        return Ok(true);
    }
    let key = ObjectKey::parse(request.target.object_key()?);
    while let Some(hold) = find_hold(key, call, names) {
        if !admit(hold, request.request_id, call)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns what holds the requests for the object with that key, if something does.
fn find_hold(key: ObjectKey<'_>, call: &ServerCall<'_>, names: &mut NameCache) -> Option<Hold> {
    let orb = call.reply.responder.orb;
    let releases = orb.held.releases();
    let object = match key {
        ObjectKey::Transient { epoch, place } if epoch == orb.epoch => orb.objects.get(place),
        ObjectKey::Transient { .. } => None,
        ObjectKey::Named(name) => orb.objects.get_named(name, names),
    }?;
    let manager = (object.manager.is_holding()).then(|| Arc::clone(&object.manager));
    Some(Hold {
        manager: manager?,
        releases,
    })
}

impl Hold {
    /// Returns true if the object is to be looked up again.
    fn is_over(&self, held: &HeldRequests) -> bool {
        !self.manager.is_holding() || held.releases() != self.releases
    }
}

impl HeldRequests {
    /// Makes an empty table with the bounds of a queue.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            is_used: AtomicBool::new(false),
            releases: AtomicU32::new(0),
            table: Mutex::new(HeldTable {
                requests: BoundedQueue::new(limits.queued_requests_max, limits.queued_bytes_max()),
                is_closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Notes that a manager may hold requests from now on.
    pub(crate) fn note_use(&self) {
        self.is_used.store(true, Ordering::Release);
    }

    /// Returns true if a manager has ever held requests.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Returns the number of [releases](Self::release). An object that is looked up afterwards has not ended, unless the number changes.
    pub(super) fn releases(&self) -> u32 {
        self.releases.load(Ordering::Acquire)
    }

    /// Holds a request of a connection that an event loop watches. Returns false if it is held, or its connection has ended, and true if its
    /// object is to be looked up again.
    ///
    /// # Errors
    /// TRANSIENT 1 if there is no room.
    fn hold(
        &self,
        hold: &Hold,
        session: &Session,
        request_id: u32,
        call: &mut ServerCall<'_>,
    ) -> Result<bool, SystemException> {
        let times = TakenTimes {
            arrived_ns: call.reply.responder.arrived_ns,
            deadline_ns: deadline::inherited_ns(),
        };
        let char_code_set = call.reply.char_code_set;
        let message = call.arguments().whole()?;
        if !self.make_room(&session.orb, message.len()) {
            return Err(refused(&session.orb));
        }
        let mut request = TakenRequest::default();
        request.fill(message, char_code_set, times);
        let shared = session.shared().ok_or(local::CONTRADICTION)?;
        let mut table = self.table.lock();
        if hold.is_over(self) {
            return Ok(true);
        }
        // A connection that ends is marked so before its held requests are dropped: one that is added before the mark is dropped with them.
        if session.state.has_ended() {
            return Ok(false);
        }
        if !table.has_room(message.len()) {
            drop(table);
            return Err(refused(&session.orb));
        }
        let held = HeldRequest::new(shared, &hold.manager, request_id, request);
        let refused = table.requests.push(held, message.len());
        debug_assert!(refused.is_ok(), "there is room");
        Ok(false)
    }

    /// Returns true if there is room for a request of `bytes` bytes. If there is none, first refuses the requests whose deadlines have passed.
    fn make_room(&self, orb: &ServerCore, bytes: usize) -> bool {
        let mut table = self.table.lock();
        if table.has_room(bytes) {
            return true;
        }
        let now_ns = monotonic_ns();
        let late = table.take_all(|held| held.request.deadline_ns() <= now_ns);
        let has_room = table.has_room(bytes);
        drop(table);
        refuse_expired(orb, &late);
        has_room
    }

    /// Waits until the object of a held request is to be looked up again. Returns false once the deadline has passed.
    ///
    /// # Errors
    /// TRANSIENT 1 if the ORB stops.
    pub(super) fn wait(&self, hold: &Hold, deadline_ns: u64) -> Result<bool, SystemException> {
        hold.manager.note_held();
        let mut table = self.table.lock();
        let mut is_in_time = true;
        while is_in_time && !hold.is_over(self) && !table.is_closed {
            if deadline_ns == deadline::NONE_NS {
                self.changed.wait(&mut table);
            } else {
                is_in_time = self.changed.wait_until(&mut table, deadline_ns);
            }
        }
        hold.manager.note_released();
        if table.is_closed {
            return Err(local::NO_ROOM);
        }
        Ok(hold.is_over(self))
    }

    /// Has the requests that the manager holds looked at again: its state has changed, or one of its adapters has ended. The most urgent ones
    /// first: as soon as a connection is reported, its threads may keep this one from the CPU.
    pub(crate) fn release(&self, manager: &Arc<ManagerState>) {
        let mut table = self.table.lock();
        self.releases.fetch_add(1, Ordering::Release);
        let held = table.requests.iter_mut();
        let released = held.filter(|held| Arc::ptr_eq(&held.manager, manager));
        #[cfg(simulation)]
        let released = released.skip(usize::from(rtorb_os::simulation::is_planted(
            "release-missed",
        )));
        let due = released.map(|held| (Reverse(held.urgency), held.become_due()));
        let mut due: Vec<_> = due.collect();
        self.changed.notify_all(&self.table);
        drop(table);
        sort_due(&mut due);
        let mut reported = BTreeSet::new();
        for (_, session) in &due {
            if reported.insert(Arc::as_ptr(session)) {
                session.report_due();
            }
        }
    }

    /// Exchanges `memory` for the first request of the connection that is due. Drop the result once the connection counts the request as taken
    /// out.
    pub(crate) fn take_due(
        &self,
        session: &Session,
        memory: &mut TakenRequest,
    ) -> Option<HeldRequest> {
        if !session.has_due() {
            return None;
        }
        let mut table = self.table.lock();
        let is_due = |held: &HeldRequest| held.is_due && held.is_of(session);
        let mut held = table.requests.remove(is_due)?;
        held.note_removed();
        mem::swap(&mut held.request, memory);
        Some(held)
    }

    /// Drops the request that its client cancels.
    #[cold]
    pub(super) fn cancel(&self, session: &Session, request_id: u32) {
        if self.is_used() {
            let is_cancelled =
                |held: &HeldRequest| held.is_of(session) && held.request_id == request_id;
            let cancelled = self.table.lock().take_all(is_cancelled);
            cancelled
                .iter()
                .for_each(|held| held.session.orb.state.note_cancelled());
        }
    }

    /// Drops the requests of a connection that has ended.
    #[cold]
    pub(super) fn forget(&self, session: &Session) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("held-kept") {
            return;
        }
        if self.is_used() {
            // The connection may end with the last of them: not under the lock.
            let forgotten = self.table.lock().take_all(|held| held.is_of(session));
            drop(forgotten);
        }
    }

    /// Drops all requests, because the ORB stops: CloseConnection tells their clients that they were not served.
    pub(super) fn close(&self) {
        let mut table = self.table.lock();
        table.is_closed = true;
        let dropped = table.take_all(|_| true);
        self.changed.notify_all(&self.table);
        drop(table);
        drop(dropped);
    }
}

impl HeldTable {
    fn has_room(&self, bytes: usize) -> bool {
        !self.is_closed && self.requests.has_room(bytes)
    }

    /// Takes out all requests for which `is_meant` returns true.
    fn take_all(&mut self, is_meant: impl Fn(&HeldRequest) -> bool) -> Vec<HeldRequest> {
        let taken = self.requests.remove_all(is_meant);
        taken.iter().for_each(HeldRequest::note_removed);
        taken
    }
}

impl HeldRequest {
    fn new(
        session: Arc<Session>,
        manager: &Arc<ManagerState>,
        request_id: u32,
        request: TakenRequest,
    ) -> Self {
        session.state.note_deferred();
        manager.note_held();
        Self {
            session,
            manager: Arc::clone(manager),
            request_id,
            request,
            urgency: urgency_here(),
            is_due: false,
        }
    }

    /// Notes that it can be served, and returns its connection.
    fn become_due(&mut self) -> Arc<Session> {
        if !mem::replace(&mut self.is_due, true) {
            self.session.due.fetch_add(1, Ordering::Release);
        }
        Arc::clone(&self.session)
    }

    /// Notes that it is not in the table any more.
    fn note_removed(&self) {
        if self.is_due {
            self.session.due.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn is_of(&self, session: &Session) -> bool {
        core::ptr::eq(&*self.session, session)
    }
}

impl Drop for HeldRequest {
    fn drop(&mut self) {
        self.session.state.note_settled();
        self.manager.note_released();
    }
}

/// Returns the native priority of the calling thread. A thread with a reservation comes before all others.
fn urgency_here() -> NativePriority {
    match undemoted_policy() {
        SchedPolicy::Deadline { .. } => NativePriority::MAX,
        policy => policy.priority(),
    }
}

/// Puts the connections of due requests in the order in which they are reported. Those of one urgency stay in the order of their arrival.
fn sort_due(due: &mut [(Reverse<NativePriority>, Arc<Session>)]) {
    #[cfg(simulation)]
    if rtorb_os::simulation::is_planted("release-unordered") {
        return;
    }
    due.sort_by_key(|(urgency, _)| *urgency);
}

/// Replies to requests whose deadlines have passed.
fn refuse_expired(orb: &ServerCore, late: &[HeldRequest]) {
    if late.is_empty() {
        return;
    }
    let mut workspace = Workspace::new(ThreadPriority::keeping());
    for held in late {
        let refusal = expired(orb);
        held.request.refuse(&held.session, &mut workspace, &refusal);
    }
}

/// Counts a request without room, and returns its exception.
fn refused(orb: &ServerCore) -> SystemException {
    orb.state.note_refused();
    local::NO_ROOM
}

/// Counts a request whose deadline has passed, and returns its exception. It could not be served, whether deadlines are enforced or not.
fn expired(orb: &ServerCore) -> SystemException {
    let _ = orb.timing.refuse_expired();
    local::EXPIRED
}

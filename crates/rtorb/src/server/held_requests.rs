//! Requests that wait because the manager of their adapter holds them (CORBA 3, 11.3.2.1), and those that a manager refuses.
//!
//! A held request is a copy in a bounded table of the ORB. Once its manager does not hold it any more, it is *due*: the event loop reports its
//! connection, and the thread that reads the connection serves it, or queues it, as a new request. So the threads and the priorities are those
//! of any request. A connection without an event loop has a thread of its own, which waits with the request; so does a thread that calls an
//! object of its own ORB.

use super::answer::TakenTimes;
use super::call::{OrbResponder, ServerCall};
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
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_core::upcall::is_implicit;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_wire::giop::{RequestHeader, Response};
use std::collections::VecDeque;
use std::sync::Arc;

/// The held requests of an ORB.
#[derive(Debug)]
pub(crate) struct HeldRequests {
    requests_max: usize,
    bytes_max: usize,
    /// Set before a manager holds requests for the first time.
    is_used: AtomicBool,
    table: Mutex<HeldTable>,
    /// Signalled when a manager ends to hold, and when the ORB stops.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HeldTable {
    /// In the order of their arrival.
    requests: VecDeque<HeldRequest>,
    bytes: usize,
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
    is_due: bool,
}

/// Decides about a request whose manager is not active. Returns true if it is to be served now, and false if it is held: then nothing replies.
///
/// # Errors
/// TRANSIENT 1 if the manager discards requests, or holds as many as it may; OBJ_ADAPTER 1 if it is inactive; TIMEOUT if the deadline
/// passes while the thread waits.
#[cold]
#[inline(never)]
pub(super) fn admit(
    manager: &Arc<ManagerState>,
    request_id: u32,
    call: &mut ServerCall<'_>,
) -> Result<bool, SystemException> {
    if !manager.is_holding() {
        return manager.refusal().map_or(Ok(true), Err);
    }
    let OrbResponder { orb, session, .. } = call.reply.responder;
    let is_served = match session {
        None => {
            // The caller waits, and has it served again.
            call.reply.responder.scratch.held_by = Some(Arc::clone(manager));
            false
        }
        Some(session) if session.is_watched() => {
            orb.held.hold(manager, session, request_id, call)?
        }
        Some(_) => {
            if !orb.held.wait(manager, deadline::inherited_ns())? {
                return Err(expired(orb));
            }
            true
        }
    };
    if is_served {
        return manager.refusal().map_or(Ok(true), Err);
    }
    call.reply.response = Response::None;
    Ok(false)
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
    let orb = call.reply.responder.orb;
    let object = match ObjectKey::parse(request.target.object_key()?) {
        ObjectKey::Transient { epoch, place } if epoch == orb.epoch => orb.objects.get(place),
        ObjectKey::Transient { .. } => None,
        ObjectKey::Named(name) => orb.objects.get_named(name, names),
    };
    let manager = object.map(|object| Arc::clone(&object.manager));
    match manager.filter(|manager| manager.is_holding()) {
        Some(manager) => admit(&manager, request.request_id, call),
        None => Ok(true),
    }
}

impl HeldRequests {
    /// Makes an empty table with the bounds of a queue.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            requests_max: limits.queued_requests() as usize,
            bytes_max: limits.queued_bytes_max(),
            is_used: AtomicBool::new(false),
            table: Mutex::default(),
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

    /// Holds a request of a connection that an event loop watches. Returns false if it is held, and true if the manager does not hold
    /// requests any more.
    fn hold(
        &self,
        manager: &Arc<ManagerState>,
        session: &Session,
        request_id: u32,
        call: &mut ServerCall<'_>,
    ) -> Result<bool, SystemException> {
        let times = TakenTimes {
            arrived_ns: call.reply.responder.arrived_ns,
            deadline_ns: deadline::inherited_ns(),
        };
        let mut request = TakenRequest::default();
        let char_code_set = call.reply.char_code_set;
        request.fill(call.arguments().whole()?, char_code_set, times);
        let shared = session.shared().ok_or(local::CONTRADICTION)?;
        let held = HeldRequest::new(shared, manager, request_id, request);
        let mut table = self.table.lock();
        if !manager.is_holding() {
            drop(table);
            return Ok(true);
        }
        let late = self.make_room(&mut table, held.request.bytes());
        let has_room = !table.is_closed
            && table.requests.len() < self.requests_max
            && table.bytes + held.request.bytes() <= self.bytes_max;
        let refused = if has_room {
            table.bytes += held.request.bytes();
            table.requests.push_back(held);
            None
        } else {
            Some(held)
        };
        drop(table);
        refuse_expired(&session.orb, &late);
        if refused.is_some() {
            session.orb.state.note_refused();
            return Err(local::NO_ROOM);
        }
        Ok(false)
    }

    /// Takes those out whose deadlines have passed, if there is no room for so many bytes.
    fn make_room(&self, table: &mut HeldTable, bytes: usize) -> Vec<HeldRequest> {
        let is_full =
            table.requests.len() >= self.requests_max || table.bytes + bytes > self.bytes_max;
        if !is_full {
            return Vec::new();
        }
        let now_ns = monotonic_ns();
        table.take_all(|held| held.request.deadline_ns() <= now_ns)
    }

    /// Waits until the manager does not hold requests any more. Returns false once the deadline has passed.
    ///
    /// # Errors
    /// TRANSIENT 1 if the ORB stops.
    pub(super) fn wait(
        &self,
        manager: &ManagerState,
        deadline_ns: u64,
    ) -> Result<bool, SystemException> {
        manager.note_held();
        let mut table = self.table.lock();
        let mut is_in_time = true;
        while is_in_time && manager.is_holding() && !table.is_closed {
            if deadline_ns == deadline::NONE_NS {
                self.changed.wait(&mut table);
            } else {
                is_in_time = self.changed.wait_until(&mut table, deadline_ns);
            }
        }
        manager.note_released();
        if table.is_closed {
            return Err(local::NO_ROOM);
        }
        Ok(!manager.is_holding())
    }

    /// Has the requests that the manager holds looked at again: its state has changed, or one of its adapters has ended.
    pub(crate) fn release(&self, manager: &Arc<ManagerState>) {
        let mut table = self.table.lock();
        let mut sessions: Vec<Arc<Session>> = Vec::new();
        for held in &mut table.requests {
            if Arc::ptr_eq(&held.manager, manager) {
                held.is_due = true;
                if !sessions
                    .iter()
                    .any(|known| Arc::ptr_eq(known, &held.session))
                {
                    sessions.push(Arc::clone(&held.session));
                }
            }
        }
        self.changed.notify_all(&self.table);
        drop(table);
        sessions.iter().for_each(|session| session.report_due());
    }

    /// Returns true if a held request of the connection is due.
    pub(super) fn has_due(&self, session: &Session) -> bool {
        self.is_used() && self.table.lock().due(session).is_some()
    }

    /// Exchanges `memory` for the first request of the connection that is due. Drop the result once the connection counts the request as taken
    /// out.
    pub(crate) fn take_due(
        &self,
        session: &Session,
        memory: &mut TakenRequest,
    ) -> Option<HeldRequest> {
        if !self.is_used() {
            return None;
        }
        let mut table = self.table.lock();
        let place = table.due(session)?;
        let mut held = table.remove(place)?;
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
    /// Returns the place of the first request of the connection that is due.
    fn due(&self, session: &Session) -> Option<usize> {
        let mut requests = self.requests.iter();
        requests.position(|held| held.is_due && held.is_of(session))
    }

    fn remove(&mut self, place: usize) -> Option<HeldRequest> {
        let held = self.requests.remove(place)?;
        self.bytes -= held.request.bytes();
        Some(held)
    }

    /// Takes out all requests for which `is_meant` returns true.
    fn take_all(&mut self, is_meant: impl Fn(&HeldRequest) -> bool) -> Vec<HeldRequest> {
        let mut taken = Vec::new();
        for place in (0..self.requests.len()).rev() {
            if is_meant(&self.requests[place]) {
                taken.extend(self.remove(place));
            }
        }
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
            is_due: false,
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

/// Counts a request whose deadline has passed, and returns its exception. It could not be served, whether deadlines are enforced or not.
fn expired(orb: &ServerCore) -> SystemException {
    let _ = orb.timing.refuse_expired();
    local::EXPIRED
}

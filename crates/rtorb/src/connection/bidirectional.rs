//! Bidirectional connections: over one connection, each end calls objects of the other (GIOP 1.2, 15.8).
//!
//! Such a connection is served as a client's is: the I/O thread of the dispatch strategy `worker_pool` reads it, whichever end opened it.
//! Requests go to the threads of the pool, and a reply to the thread that waits for it. So no thread of this ORB that calls or serves has to
//! read, and a servant may call back while its caller waits. The server's half is a `RequestCarrier`; this is the caller's half. The
//! `table` has the addresses to which the connections lead.

mod table;

pub(crate) use table::BidirectionalTable;

use super::exclusive;
use super::invocation::{Arguments, Invocation};
use super::multiplexed::{RETRIES_MAX, may_retry};
use super::reply::{CallError, Outcome, Results, read_whole_reply};
use super::route::{Route, SharedEndpoint};
use super::shared::Others;
use crate::exception::{Phase, SystemException, local};
use crate::outgoing::CancelRequest;
use crate::thread_state::{self, THREAD};
use crate::transport::Unsent;
use crate::wait::waiter::{Waiter, with_call_slot};
use core::fmt::Debug;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_wire::Writer;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::{ClientState, Pending, ReplyError};
use rtorb_wire::giop::{MessageType, Response};
use rustix::io::Errno;
use std::sync::{Arc, Weak};

/// A served connection over which this ORB sends requests too.
pub(crate) trait RequestCarrier: Debug + Send + Sync {
    /// Sends a request behind the messages of other threads. Waits until `deadline_ns` while the peer takes none of those; then the
    /// connection keeps what the peer does not take at once.
    fn send_request(&self, request: &Writer<'_>, deadline_ns: Option<u64>) -> Result<(), Unsent>;

    /// Returns the number by which both ends know the connection in recordings.
    fn identity(&self) -> u64;

    /// Sends a CancelRequest if that needs no wait.
    fn send_cancel(&self, cancel: &CancelRequest);

    /// Ends the connection with CloseConnection once the requests that it has received have their replies.
    fn leave(&self);
}

/// The caller's half of a bidirectional connection.
#[derive(Debug)]
pub(crate) struct BidirectionalConnection {
    carrier: Weak<dyn RequestCarrier>,
    state: ClientState,
    /// The code set of `char` data in both directions.
    char_code_set: CharCodeSet,
    /// The listen points of this ORB, as the data of their service context, if it has opened the connection.
    listen_points: Option<Arc<[u8]>>,
    /// True once the server knows the listen points.
    are_points_known: AtomicBool,
    calls: Mutex<Pending<Arc<Waiter>>>,
}

/// Sends a call over the bidirectional connection to its address, which is opened if there is none. An invocation that cannot be
/// bidirectional uses a connection of the calling thread.
#[cold]
#[inline(never)]
pub(super) fn call<'a>(
    table: &BidirectionalTable,
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, SystemException> {
    if THREAD.with(|thread| thread.reads_replies.get()) {
        return Err(local::WOULD_DEADLOCK);
    }
    let is_nested = invocation.client.host.is_in_servant();
    let mut retries_left = RETRIES_MAX;
    loop {
        let Some((connection, is_new)) = table.connection(invocation)? else {
            return call_alone(invocation, arguments, results);
        };
        // A server may serve one request of a connection at a time, and earlier ones may wait for this upcall. The end that has accepted
        // the connection has no other way.
        let others = if is_nested && connection.is_opened_here() {
            Others::None
        } else {
            Others::Any
        };
        let error = match connection.call(invocation, others, arguments, results) {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        if others == Others::None && error.is_stale() {
            return call_alone(invocation, arguments, results);
        }
        if retries_left == 0 || !may_retry(&error, is_new) {
            return Err(error.into_exception(invocation));
        }
        invocation.check_time(Phase::Send)?;
        retries_left -= 1;
    }
}

/// Sends a call over a connection of the calling thread.
fn call_alone<'a>(
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, SystemException> {
    exclusive::call(&invocation.delayed(), arguments, results)
}

impl BidirectionalConnection {
    /// Makes the half of a connection that this ORB has opened. `listen_points` is the data of the service context that offers it to the
    /// server.
    pub(super) fn opened(
        carrier: Weak<dyn RequestCarrier>,
        invocation: &Invocation<'_>,
        listen_points: Arc<[u8]>,
    ) -> Self {
        let endpoint = &invocation.route.endpoint;
        Self {
            state: endpoint.client_state(),
            listen_points: Some(listen_points),
            ..Self::accepted(carrier, endpoint.char_code_set)
        }
    }

    /// Makes the half of a connection that a client has offered.
    pub(crate) fn accepted(carrier: Weak<dyn RequestCarrier>, char_code_set: CharCodeSet) -> Self {
        Self {
            carrier,
            state: ClientState::of_acceptor(),
            char_code_set,
            listen_points: None,
            are_points_known: AtomicBool::new(false),
            calls: Mutex::default(),
        }
    }

    /// Returns true if this ORB has opened the connection.
    pub(crate) fn is_opened_here(&self) -> bool {
        self.listen_points.is_some()
    }

    /// Returns the code set of `char` data in both directions.
    pub(crate) fn char_code_set(&self) -> CharCodeSet {
        self.char_code_set
    }

    /// Returns true while requests may be sent.
    fn is_open(&self) -> bool {
        self.calls.lock().is_open()
    }

    /// Returns true if no thread waits for a reply.
    pub(crate) fn is_unused(&self) -> bool {
        self.calls.lock().is_empty()
    }

    /// Sends a request and, if a reply is expected, waits for it.
    fn call<'a>(
        &self,
        invocation: &Invocation<'_>,
        others: Others,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, CallError> {
        let carrier = self.carrier.upgrade().ok_or(ReplyError::ClosedBefore)?;
        if invocation.route.endpoint.char_code_set != self.char_code_set {
            let route = self.in_its_code_set(invocation.route);
            let invocation = Invocation {
                route: &route,
                ..*invocation
            };
            return self.call(&invocation, others, arguments, results);
        }
        with_call_slot(|slot| {
            let request_id = self.state.next_shared_request_id();
            let listen_points = self.unsent_listen_points();
            let buffer = core::mem::take(&mut slot.out);
            let mut w = invocation.writer(buffer);
            let sent = self
                .write(invocation, &mut w, request_id, listen_points, arguments)
                .and_then(|()| {
                    let waiter = (invocation.response != Response::None).then_some(&slot.waiter);
                    self.admit(request_id, waiter, others)?;
                    let sent = carrier.send_request(&w, invocation.deadline.at_ns());
                    Ok(sent.map_err(|unsent| self.unsent(request_id, waiter, unsent))?)
                });
            slot.out = w.into_buffer();
            sent?;
            if let Some(part) = thread_state::recorder() {
                part.note_sent(request_id, carrier.identity());
            }
            if invocation.response == Response::None {
                return Ok(Outcome::Done);
            }
            let give_up = || self.give_up(request_id);
            if !(slot.waiter).await_reply(invocation.deadline.at_ns(), give_up) {
                carrier.send_cancel(&invocation.cancel_request(request_id));
                self.retire();
                return Err(ReplyError::TimedOut.into());
            }
            let delivery = slot.waiter.delivery.lock();
            if let Some(error) = delivery.error {
                return Err(error.into());
            }
            if listen_points.is_some() {
                self.are_points_known.store(true, Ordering::Relaxed);
            }
            let bytes = &delivery.message[..delivery.bytes];
            read_whole_reply(invocation, request_id, bytes, results)
        })
    }

    /// Returns the route with the code set of this connection, which differs from that of the reference.
    #[cold]
    fn in_its_code_set(&self, route: &Route) -> Route {
        let endpoint = &route.endpoint;
        let key = endpoint.key_with(self.char_code_set, endpoint.names_code_sets);
        Route {
            endpoint: Arc::new(SharedEndpoint::new(&key, true)),
            ..route.clone()
        }
    }

    /// Returns the listen points of this ORB, unless the server knows them or has offered the connection itself.
    fn unsent_listen_points(&self) -> Option<&[u8]> {
        let listen_points = self.listen_points.as_deref()?;
        (!self.are_points_known.load(Ordering::Relaxed)).then_some(listen_points)
    }

    fn write<'a>(
        &self,
        invocation: &Invocation<'_>,
        w: &mut Writer<'a>,
        request_id: u32,
        listen_points: Option<&[u8]>,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), CallError> {
        let needs_code_sets = self.state.needs_code_sets();
        let written = match listen_points {
            Some(listen_points) => {
                let contexts = (needs_code_sets, listen_points);
                invocation.encode_with_listen_points(w, request_id, contexts, arguments)
            }
            None => invocation.encode(w, request_id, needs_code_sets, arguments),
        };
        written.map_err(|error| CallError::Exception(error.into()))
    }

    /// Adds a request that is about to be sent to those that wait, if it has a reply.
    fn admit(
        &self,
        request_id: u32,
        waiter: Option<&Arc<Waiter>>,
        others: Others,
    ) -> Result<(), ReplyError> {
        let mut calls = self.calls.lock();
        let is_admitted = calls.is_open() && (others == Others::Any || calls.is_empty());
        let is_added = is_admitted
            && waiter.is_none_or(|waiter| {
                waiter.begin();
                calls.insert(request_id, Arc::clone(waiter))
            });
        is_added.then_some(()).ok_or(ReplyError::ClosedBefore)
    }

    /// Returns the error of a request that was not sent whole.
    fn unsent(&self, request_id: u32, waiter: Option<&Arc<Waiter>>, unsent: Unsent) -> ReplyError {
        if let Some(waiter) = waiter
            && !self.give_up(request_id)
        {
            waiter.await_delivery();
        }
        match (unsent.errno, unsent.has_begun) {
            (Errno::AGAIN, false) => ReplyError::NotSent,
            (Errno::AGAIN, true) => ReplyError::SendTimedOut,
            (errno, _) => self.state.send_failed(errno.raw_os_error()),
        }
    }

    /// Stops waiting for a reply. Returns false if the reply, or the reason why there is none, is being delivered.
    fn give_up(&self, request_id: u32) -> bool {
        self.remove(request_id).is_some()
    }

    /// Delivers a reply to the thread that waits for it. `take` moves the message to a buffer, and returns its length.
    pub(crate) fn deliver(
        &self,
        kind: MessageType,
        request_id: u32,
        take: impl FnOnce(&mut Vec<u8>) -> usize,
    ) {
        self.state.note_reply(kind);
        if let Some(waiter) = self.remove(request_id) {
            // A thread waits for it, and no task.
            let _ = waiter.deliver(|delivery| {
                delivery.bytes = take(&mut delivery.message);
                delivery.error = None;
            });
        }
    }

    /// Removes a pending request. Leaves the connection if it was the last one and no more are admitted.
    fn remove(&self, request_id: u32) -> Option<Arc<Waiter>> {
        let mut calls = self.calls.lock();
        let waiter = calls.remove(request_id);
        let is_left = !calls.is_open() && calls.is_empty();
        drop(calls);
        if is_left {
            self.leave();
        }
        waiter
    }

    /// Sends no more requests after one without a reply in time, if this ORB can open another connection: a device between
    /// the ends may have dropped this one without notice.
    fn retire(&self) {
        if !self.is_opened_here() {
            return;
        }
        let mut calls = self.calls.lock();
        calls.retire();
        let is_left = calls.is_empty();
        drop(calls);
        if is_left {
            self.leave();
        }
    }

    fn leave(&self) {
        if let Some(carrier) = self.carrier.upgrade() {
            carrier.leave();
        }
    }

    /// Ends all calls, because the connection has ended.
    pub(crate) fn end(&self, why: ReplyError) {
        let waiting: Vec<_> = self.calls.lock().end(why).collect();
        for waiter in waiting {
            let _ = waiter.deliver(|delivery| delivery.error = Some(why));
        }
    }
}

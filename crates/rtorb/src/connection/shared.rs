//! One connection that many threads call on at once: each sends in its turn, and each gets its own reply.
//!
//! A request is written into its thread's own buffer, so that the lock of the stream is held for one system call; it inherits
//! the priority of who waits for it. Who reads is the wait strategy's affair: it puts replies where their threads find
//! them. A thread whose deadline passes leaves the connection to those who wait there already, and nobody else.

use super::Failure;
use super::failures::Attempt;
use super::reply::{Outcome, Results, interpret};
use super::request::{Arguments, Numbered, Request};
use crate::endpoint::Endpoint;
use crate::exception::{ExceptionKind, Phase, SystemException};
use crate::inbox::Inbox;
use crate::outgoing;
use crate::strategies::WaitStrategy;
use crate::transport::Stream;
use crate::wait::read::{Deadline, Silence};
use crate::wait::waiter::{Answer, Desk, Over, Waiter, at_desk};
use crate::wait::{leader_followers, reactor};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb_os::sync::{Mutex, MutexGuard};
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{
    self, Accepted, Header, LocateReplyHeader, MessageType, ReplyHeader, Response,
};
use rtorb_wire::{DecodeError, Writer};
use rustix::io::Errno;
use std::sync::Arc;

/// A connection of all client threads of a channel.
#[derive(Debug)]
pub(crate) struct Shared {
    stream: Stream,
    endpoint: Arc<Endpoint>,
    char_code_set: CharCodeSet,
    octets_max: usize,
    next_request_id: AtomicU32,
    /// True once the peer knows the code set, or need not.
    code_set_told: AtomicBool,
    /// True once a reply came: only then can the connection have been closed for having been idle.
    proved: AtomicBool,
    /// True once the connection is of no use for another request; `waiting` knows why.
    is_over: AtomicBool,
    /// Held while a message goes out.
    sending: Mutex<()>,
    waiting: Mutex<Waiting>,
    /// Held by the one thread that reads.
    incoming: Mutex<Incoming>,
}

/// Who waits on a connection.
#[derive(Debug, Default)]
struct Waiting {
    /// One for each thread that calls.
    waiters: Vec<Entry>,
    /// True while one of them reads for all.
    has_leader: bool,
    /// True once no more of them may come.
    is_retired: bool,
    over: Option<Over>,
}

/// A request whose reply has not come.
#[derive(Debug)]
struct Entry {
    request_id: u32,
    waiter: Arc<Waiter>,
    /// False while it is still being sent: a thread that does that cannot read.
    is_sent: bool,
}

/// Which other requests may be on a connection when one is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    /// Any number.
    Any,
    /// None: where there is one, the request does not go, and nobody waits for it.
    None,
}

/// Whether a thread is to read for all who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// It is.
    Taken,
    /// Another does already.
    AnotherHasIt,
    /// Its own answer is on its way.
    NotNeeded,
}

/// Whether a thread may go without its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Give {
    /// It may: should the reply still come, nobody gets it.
    Up,
    /// Somebody is about to give it the answer.
    NotYet,
}

impl Shared {
    /// A connection over a stream, which the ORB's reactor reads if that is the way to wait.
    pub(super) fn new(request: &Request<'_>, stream: Stream) -> Result<Arc<Self>, Failure> {
        let limits = &request.orb.limits;
        let endpoint = &request.route.endpoint;
        let shared = Arc::new(Self {
            stream,
            endpoint: Arc::clone(&endpoint.endpoint),
            char_code_set: endpoint.char_code_set,
            octets_max: limits.message_octets_max,
            next_request_id: AtomicU32::new(0),
            code_set_told: AtomicBool::new(endpoint.char_code_set == CharCodeSet::Latin1),
            proved: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            sending: Mutex::new(()),
            waiting: Mutex::default(),
            incoming: Mutex::new(Incoming {
                inbox: Inbox::new(limits.message_octets_max),
                reassembly: giop::Reassembly::new(
                    limits.message_octets_max,
                    limits.fragment_chains_max,
                ),
            }),
        });
        if request.orb.strategies.connection.wait() == WaitStrategy::Reactor {
            let config = &request.orb.reactor_thread;
            let watched = request.orb.reactor.watch(&shared, config);
            watched.map_err(|(phase, errno)| {
                let attempt = shared.attempt(Deadline::after(None));
                attempt.failure(ExceptionKind::NoResources.into(), phase, Some(errno))
            })?;
        }
        Ok(shared)
    }

    /// Sends a request and, if one is due, waits for its reply.
    ///
    /// One that does not go for want of the right company fails as on a connection that was closed before.
    pub(super) fn call<'a>(
        &self,
        request: &Request<'_>,
        company: Company,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, Failure> {
        let deadline = Deadline::after(request.timeout);
        at_desk(|desk| {
            let request_id = self.next_request_id.fetch_add(2, Ordering::Relaxed);
            let numbered = Numbered {
                request_id,
                code_set_told: self.code_set_told.load(Ordering::Relaxed),
            };
            let mut w = request.writer(core::mem::take(&mut desk.out));
            let sent = match request.encode(&mut w, numbered, arguments) {
                Ok(()) => {
                    let own = (request_id, &desk.waiter);
                    self.send(request, company, &w, own, deadline)
                }
                Err(error) => Err(SystemException::from_encode(error).into()),
            };
            desk.out = w.into_buffer();
            sent?;
            match request.response {
                Response::None => Ok(Outcome::Done),
                _ => self.await_reply(request, desk, (request_id, deadline), results),
            }
        })
    }

    /// Sends a message, its sender in the list before a reply can come.
    fn send(
        &self,
        request: &Request<'_>,
        company: Company,
        message: &Writer<'_>,
        (request_id, waiter): (u32, &Arc<Waiter>),
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let deadline_ns = deadline.at_ns();
        let turn = match (company, deadline_ns) {
            (Company::None, _) => match self.sending.try_lock() {
                None => return Err(self.attempt(deadline).closed_before(Phase::Send)),
                turn => turn,
            },
            (Company::Any, None) => Some(self.sending.lock()),
            (Company::Any, Some(deadline_ns)) => self.sending.lock_until(deadline_ns),
        };
        let Some(turn) = turn else {
            return Err(self.attempt(deadline).not_sent_in_time());
        };
        let is_awaited = request.response != Response::None;
        if is_awaited {
            waiter.begin();
        }
        if !self.register(company, request_id, is_awaited.then_some(waiter)) {
            return Err(self.attempt(deadline).closed_before(Phase::Send));
        }
        let sent = outgoing::send_by(request.orb, &self.stream, message, deadline_ns);
        let Err(unsent) = sent else { return Ok(()) };
        if unsent.has_begun || unsent.errno != Errno::AGAIN {
            // Before anybody else may send: that would be taken for the rest of this.
            self.end(Over::Failed(unsent.errno));
        }
        drop(turn);
        if is_awaited && self.give_up(request_id) == Give::NotYet {
            waiter.await_certain_answer();
        }
        Err(match (unsent.errno, unsent.has_begun) {
            (Errno::AGAIN, false) => self.attempt(deadline).not_sent_in_time(),
            (errno, _) => self.attempt(deadline).send_failure(errno),
        })
    }

    fn await_reply(
        &self,
        request: &Request<'_>,
        desk: &Desk,
        (request_id, deadline): (u32, Deadline),
        results: Results<'_>,
    ) -> Result<Outcome, Failure> {
        let waiter = &*desk.waiter;
        let deadline_ns = deadline.at_ns();
        let is_answered = match request.orb.strategies.connection.wait() {
            WaitStrategy::Reactor => reactor::await_answer(self, waiter, request_id, deadline_ns),
            _ => leader_followers::await_answer(self, waiter, request_id, deadline_ns),
        };
        let attempt = self.attempt(deadline);
        if !is_answered {
            // Nothing may ever come here again, or too late for anybody to read it, so that the server is stuck with it.
            self.retire();
            return Err(attempt.silence_failure(Silence::TimedOut));
        }
        let answer = waiter.answer.lock();
        if let Some(over) = answer.over {
            return Err(self.over_failure(over, deadline));
        }
        let message = &answer.message[..answer.octets];
        let header = Header::parse(message, self.octets_max).ok().flatten();
        let Some(header) = header else {
            return Err(attempt.header_failure(DecodeError::BadMagic));
        };
        let mut reader = header
            .reader(message)
            .with_char_code_set(self.char_code_set)
            .with_context(request.orb);
        let read = interpret(header.message_type, &mut reader, request_id, results);
        match read {
            Ok(read) => attempt.conclude(read).and_then(|outcome| {
                let other = DecodeError::BadTag {
                    what: "the id of a reply",
                    value: request_id,
                };
                outcome.ok_or_else(|| attempt.header_failure(other))
            }),
            Err(undecodable) => Err(attempt.decode_failure(undecodable, None)),
        }
    }

    /// True once the connection is of no use for another request.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Closes the connection unless somebody waits on it; true if it is closed now.
    pub(super) fn close_unless_used(&self) -> bool {
        let mut waiting = self.waiting.lock();
        if !waiting.waiters.is_empty() {
            return false;
        }
        self.end_with(&mut waiting, Over::Unused);
        true
    }

    /// Lets no more requests in; closes the connection unless somebody waits on it.
    #[cold]
    fn retire(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.waiters.is_empty() {
            return self.end_with(&mut waiting, Over::Unused);
        }
        waiting.is_retired = true;
        self.is_over.store(true, Ordering::Release);
    }

    /// The stream, for whoever waits for something to come.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What has come and not been handed out; for the one thread that reads.
    pub(crate) fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock()
    }

    /// Makes the sender of that request the one who reads for all, unless there is one or its answer is on its way.
    pub(crate) fn take_lead(&self, request_id: u32) -> Lead {
        let mut waiting = self.waiting.lock();
        match waiting.place(request_id) {
            None => Lead::NotNeeded,
            Some(place) if waiting.has_leader => {
                waiting.waiters[place].is_sent = true;
                Lead::AnotherHasIt
            }
            Some(_) => {
                waiting.has_leader = true;
                Lead::Taken
            }
        }
    }

    /// Has another of those who wait read for all, the one that has waited longest; nobody if nobody waits.
    pub(crate) fn hand_lead_on(&self) {
        let mut waiting = self.waiting.lock();
        let next = waiting.waiters.iter().find(|entry| entry.is_sent);
        if let Some(next) = next {
            next.waiter.lead();
        }
        waiting.has_leader = next.is_some();
    }

    /// Takes a request off the list of those that wait for their reply.
    pub(crate) fn give_up(&self, request_id: u32) -> Give {
        let mut waiting = self.waiting.lock();
        match waiting.place(request_id) {
            Some(place) => {
                waiting.waiters.remove(place);
                Give::Up
            }
            None => Give::NotYet,
        }
    }

    /// Ends the connection: all who wait are told why.
    #[cold]
    pub(crate) fn end(&self, over: Over) {
        let mut waiting = self.waiting.lock();
        self.end_with(&mut waiting, over);
    }

    fn end_with(&self, waiting: &mut Waiting, over: Over) {
        if waiting.over.is_some() {
            return;
        }
        waiting.over = Some(over);
        self.is_over.store(true, Ordering::Release);
        self.stream.shut();
        // Under the lock, so that a thread that gives up its request finds it answered.
        for entry in waiting.waiters.drain(..) {
            entry.waiter.answer.lock().over = Some(over);
            entry.waiter.answered();
        }
    }

    /// Puts a request that is about to be sent into the list, if somebody waits for its reply; false if it may not go.
    fn register(&self, company: Company, request_id: u32, waiter: Option<&Arc<Waiter>>) -> bool {
        let mut waiting = self.waiting.lock();
        let is_let_in = match company {
            Company::Any => true,
            Company::None => waiting.waiters.is_empty(),
        };
        if waiting.over.is_some() || waiting.is_retired || !is_let_in {
            return false;
        }
        if let Some(waiter) = waiter {
            waiting.waiters.push(Entry {
                request_id,
                waiter: Arc::clone(waiter),
                is_sent: false,
            });
        }
        true
    }

    /// Gives the thread that waits for that request its reply, if one does.
    fn deliver(&self, request_id: u32, put: impl FnOnce(&mut Answer)) -> bool {
        let waiter = {
            let mut waiting = self.waiting.lock();
            let place = waiting.place(request_id);
            place.map(|place| waiting.waiters.remove(place).waiter)
        };
        let Some(waiter) = waiter else { return false };
        put(&mut waiter.answer.lock());
        waiter.answered();
        true
    }

    fn over_failure(&self, over: Over, deadline: Deadline) -> Failure {
        let attempt = self.attempt(deadline);
        match over {
            Over::Ended => attempt.silence_failure(Silence::Ended),
            Over::Failed(errno) => attempt.silence_failure(Silence::Failed(errno)),
            Over::ByPeer | Over::Unused => attempt.closed_before(Phase::AwaitReply),
            Over::OutOfPlace => attempt.out_of_place(),
            Over::Malformed(error) => attempt.header_failure(error),
        }
    }

    fn note_reply(&self, kind: MessageType) {
        if !self.proved.load(Ordering::Relaxed) {
            self.proved.store(true, Ordering::Relaxed);
        }
        if kind == MessageType::Reply && !self.code_set_told.load(Ordering::Relaxed) {
            self.code_set_told.store(true, Ordering::Relaxed);
        }
    }

    fn attempt(&self, deadline: Deadline) -> Attempt<'_> {
        Attempt {
            endpoint: &self.endpoint,
            deadline,
            proved: self.proved.load(Ordering::Relaxed),
        }
    }
}

impl Waiting {
    fn place(&self, request_id: u32) -> Option<usize> {
        self.waiters
            .iter()
            .position(|entry| entry.request_id == request_id)
    }
}

/// The reading side of a connection.
#[derive(Debug)]
pub(crate) struct Incoming {
    inbox: Inbox,
    reassembly: giop::Reassembly,
}

impl Incoming {
    /// Receives what is there without waiting; nothing may be.
    pub(crate) fn receive(&mut self, shared: &Shared) -> Result<(), Over> {
        match self.inbox.receive_now(&shared.stream) {
            Ok(0) => Err(Over::Ended),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(Over::Failed(errno)),
        }
    }

    /// Hands out every message that is there whole.
    pub(crate) fn hand_out(&mut self, shared: &Shared) -> Result<(), Over> {
        loop {
            let Some(header) = self.inbox.header().map_err(Over::Malformed)? else {
                return Ok(());
            };
            let octets = header.message_octets();
            if self.inbox.len() < octets {
                self.inbox.make_room(octets);
                return Ok(());
            }
            self.hand_out_message(&header, shared)?;
        }
    }

    fn hand_out_message(&mut self, header: &Header, shared: &Shared) -> Result<(), Over> {
        let octets = header.message_octets();
        match header.message_type {
            MessageType::Reply | MessageType::LocateReply if !header.more_fragments => {
                let request_id = request_id(header, self.inbox.octets(octets))?;
                shared.note_reply(header.message_type);
                let inbox = &mut self.inbox;
                let is_awaited = shared.deliver(request_id, |answer| {
                    (answer.octets, answer.over) = (octets, None);
                    inbox.take(octets, &mut answer.message);
                });
                if !is_awaited {
                    self.inbox.consume(octets);
                }
                Ok(())
            }
            MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
                let accepted = self.reassembly.accept(header, self.inbox.octets(octets));
                self.inbox.consume(octets);
                match accepted.map_err(Over::Malformed)? {
                    Accepted::Message(message) => hand_out_reassembled(message, shared),
                    _ => Ok(()),
                }
            }
            // A server that has begun to reply has carried the request out: it must not do so again.
            MessageType::CloseConnection if self.reassembly.octets() > 0 => Err(Over::Ended),
            MessageType::CloseConnection => Err(Over::ByPeer),
            _ => Err(Over::OutOfPlace),
        }
    }
}

#[cold]
fn hand_out_reassembled(message: Vec<u8>, shared: &Shared) -> Result<(), Over> {
    let header = Header::parse(&message, shared.octets_max)
        .map_err(Over::Malformed)?
        .ok_or(Over::Malformed(DecodeError::BadMagic))?;
    let request_id = request_id(&header, &message)?;
    shared.note_reply(header.message_type);
    shared.deliver(request_id, |answer| {
        (answer.octets, answer.over) = (message.len(), None);
        answer.message = message;
    });
    Ok(())
}

/// Which request a reply is for.
fn request_id(header: &Header, message: &[u8]) -> Result<u32, Over> {
    let mut reader = header.reader(message);
    let request_id = match header.message_type {
        MessageType::LocateReply => LocateReplyHeader::decode(&mut reader).map(|it| it.request_id),
        _ => ReplyHeader::decode(&mut reader).map(|it| it.request_id),
    };
    request_id.map_err(Over::Malformed)
}

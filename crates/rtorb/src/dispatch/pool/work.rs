//! The work of a lane's thread: it waits, serves, and helps more urgent lanes.

use super::connection::{Connection, TURN_MAX, Turn};
use super::lane::{EVENTS_MAX, Lane};
use super::request_queue::{Job, RequestQueue};
use super::running::Pool;
use super::standby::Standby;
use crate::server::{Event, EventRoom, Readiness, ServerCore, TakenRequest, Token, Workspace};
use core::mem::MaybeUninit;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::MutexGuard;
use std::collections::VecDeque;
use std::sync::Arc;

/// A running thread of a lane.
pub(super) struct LaneThread<'p> {
    orb: &'p Arc<ServerCore>,
    pool: &'p Pool,
    lane: &'p Lane,
    /// Its number in the lane.
    place: u32,
    lifetime: Lifetime,
    /// It may have the scheduling of another lane.
    is_lent: bool,
    /// It is the leader of its lane.
    leading: Option<MutexGuard<'p, ()>>,
    workspace: Workspace,
    /// The request that it serves, if that was taken out of its connection.
    request: TakenRequest,
    /// Connections that wait until no other has an event, because their next replies may be bulk.
    deferred: VecDeque<(Token, Readiness)>,
    /// The largest number of them: none if another thread could serve the other connections.
    deferred_max: usize,
    /// The connection that it served last, if that is one through shared memory whose wait strategy lingers.
    lingering: Option<Token>,
    /// The number of times that it lingered and did not look at the events of its lane.
    lingered: u32,
}

/// Connections that wait for others at a time. A further one is served at once.
const DEFERRED_MAX: usize = 64;

/// When a thread of a lane ends before its pool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Never.
    Static,
    /// After it has been idle for this time.
    Dynamic { idle_ns: u64 },
}

impl Lifetime {
    /// The time that it waits for work; `None`: no limit.
    #[inline]
    fn idle_ns(self) -> Option<u64> {
        match self {
            Self::Static => None,
            Self::Dynamic { idle_ns } => Some(idle_ns),
        }
    }
}

/// Whether a thread is still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Yes,
    No,
}

impl<'p> LaneThread<'p> {
    pub(super) fn new(
        orb: &'p Arc<ServerCore>,
        pool: &'p Pool,
        lane: &'p Lane,
        place: u32,
        lifetime: Lifetime,
    ) -> Self {
        let is_alone = lane.events_max() > 1;
        let deferred_max = if is_alone { DEFERRED_MAX } else { 0 };
        Self {
            orb,
            pool,
            lane,
            place,
            lifetime,
            is_lent: false,
            leading: None,
            workspace: lane.workspace(),
            request: TakenRequest::with_room(),
            deferred: VecDeque::with_capacity(deferred_max),
            deferred_max,
            lingering: None,
            lingered: 0,
        }
    }

    /// Serves until the pool is stopped. A dynamic thread also ends after it was idle for too long.
    pub(super) fn run(mut self) {
        if let Some(queue) = &self.lane.queue {
            while self.serve_job(queue) == Needed::Yes {}
            return;
        }
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let room = &mut room[..self.lane.events_max()];
        while !self.pool.is_stopping() && self.serve_events(room) == Needed::Yes {}
    }

    fn serve_events(&mut self, room: &mut EventRoom) -> Needed {
        if let Some(leader) = &self.lane.leader {
            self.leading = Some(leader.lock());
        }
        if let Some(token) = self.lingering
            && self.deferred.is_empty()
            && self.serve_lingering(token)
        {
            self.leading = None;
            return Needed::Yes;
        }
        self.begin_idle();
        let timeout_ns = if self.deferred.is_empty() {
            self.lifetime.idle_ns()
        } else {
            Some(0)
        };
        let events = self.lane.wait(room, timeout_ns);
        self.end_idle();
        if events.is_empty() && self.deferred.is_empty() {
            self.leading = None;
            self.return_to_own_lane();
            return match self.lifetime {
                Lifetime::Static => Needed::Yes,
                Lifetime::Dynamic { .. } => Needed::No,
            };
        }
        for event in events {
            let event = self.lane.event(event);
            if event != Some(Event::Help) {
                self.return_to_own_lane();
            }
            if let Some(event) = event {
                self.serve(self.lane, event);
            }
        }
        if !self.deferred.is_empty() {
            self.serve_deferred();
        }
        self.leading = None;
        Needed::Yes
    }

    /// Serves the lane's only client again, if it calls again at once; false if the thread has to wait for events.
    ///
    /// After some calls it does, so that a client that connects, and a stop of the pool, are seen.
    #[cold]
    fn serve_lingering(&mut self, token: Token) -> bool {
        let lane = self.lane;
        if self.lingered < TURN_MAX
            && lane.linger(token)
            && let Some(connection) = lane.connection(token)
        {
            self.lingered += 1;
            self.give_turn(lane, &connection, token, Readiness::Readable);
            return true;
        }
        self.lingered = 0;
        self.lingering = None;
        false
    }

    /// Has a connection wait for its turn; false if it is served now.
    #[cold]
    fn defer(&mut self, token: Token, readiness: Readiness) -> bool {
        let is_deferred = self.deferred.len() < self.deferred_max;
        if is_deferred {
            self.deferred.push_back((token, readiness));
        }
        is_deferred
    }

    /// Serves the connection that has been deferred for the longest time.
    #[cold]
    fn serve_deferred(&mut self) {
        let Some((token, readiness)) = self.deferred.pop_front() else {
            return;
        };
        if let Some(connection) = self.lane.connection(token) {
            self.give_turn(self.lane, &connection, token, readiness);
        }
    }

    fn serve_job(&mut self, queue: &RequestQueue) -> Needed {
        let deadline_ns = self
            .lifetime
            .idle_ns()
            .map(|idle_ns| monotonic_ns() + idle_ns);
        self.begin_idle();
        let job = queue.next(deadline_ns);
        self.end_idle();
        if !matches!(job, Ok(Job::Help)) {
            self.return_to_own_lane();
        }
        match job {
            Ok(job) => self.serve_queued(queue, job),
            // The idle time of a dynamic thread has passed, or the pool is stopped.
            Err(_) => return Needed::No,
        }
        Needed::Yes
    }

    fn serve(&mut self, lane: &Lane, event: Event) {
        match event {
            Event::Connection(token, readiness) => self.serve_connection(lane, token, readiness),
            Event::Listener(number) => lane.accept(self.orb, number),
            Event::Help => self.help(),
            Event::Look => lane.look_at_connections(self.orb),
            Event::Stop => {}
        }
    }

    #[inline]
    fn serve_connection(&mut self, lane: &Lane, token: Token, readiness: Readiness) {
        let Some(connection) = lane.connection(token) else {
            return;
        };
        if connection.session.may_be_bulk() && self.defer(token, readiness) {
            return;
        }
        self.give_turn(lane, &connection, token, readiness);
    }

    // Called in two places, it would not be inlined otherwise: 30 instructions a request.
    #[inline(always)]
    fn give_turn(
        &mut self,
        lane: &Lane,
        connection: &Connection,
        token: Token,
        readiness: Readiness,
    ) {
        if connection.session.stream.lingers() && self.lane.may_linger() {
            self.lingering = Some(token);
        }
        match connection.serve(readiness, &mut self.workspace, &mut self.request) {
            Turn::Done => {}
            Turn::Taken => {
                self.leading = None;
                connection.serve_taken(&mut self.workspace, &mut self.request);
            }
            // The last thread of a pool that stops sends CloseConnection.
            Turn::Over if self.pool.is_stopping() || self.orb.is_stopping() => {}
            Turn::Over => lane.remove(token, &connection.session),
        }
    }

    fn serve_queued(&mut self, queue: &RequestQueue, job: Job) {
        match job {
            Job::Help => self.help(),
            Job::Request(session, request) => {
                queue.serve(&session, request, &mut self.workspace);
            }
        }
    }

    /// Counts this thread as idle, once no borrowing lane wants it.
    #[inline]
    fn begin_idle(&mut self) {
        let Some(standby) = &self.lane.standby else {
            return;
        };
        loop {
            if standby.begin_idle(self.place) {
                self.pool.watch_while_busy(self.lane);
            }
            let wants = |&number: &usize| self.pool.lanes[number].wants_help();
            if !standby.borrowers.iter().any(wants) {
                return;
            }
            self.end_idle();
            self.help();
        }
    }

    #[inline]
    fn end_idle(&mut self) {
        let Some(standby) = &self.lane.standby else {
            return;
        };
        if standby.end_idle() {
            self.pool.watch_while_busy(self.lane);
        }
        self.is_lent |= standby.take_raised(self.place);
    }

    /// Prepares to work for its own lane: repeats unanswered calls of other lanes, and takes the scheduling of its own.
    #[inline]
    fn return_to_own_lane(&mut self) {
        // Only a lane that lends threads is called.
        if self.lane.standby.is_some() {
            self.pool.repeat_calls(self.lane);
            self.resume_own_policy();
        }
    }

    /// Serves one request of each more urgent lane that wants help.
    #[cold]
    fn help(&mut self) {
        let Some(standby) = &self.lane.standby else {
            return;
        };
        standby.clear_call();
        for &number in &standby.borrowers {
            let lane = &self.pool.lanes[number];
            if lane.wants_help() {
                let entered = lane.enter();
                // It is raised before it claims the help: from then on, no thread in between delays it.
                let is_urgent = entered && self.run_as(lane);
                if lane.standby.as_ref().is_some_and(Standby::claim_help) && is_urgent {
                    standby.lend();
                    if self.lane.lacks_thread() {
                        self.pool.ask_for_help(self.lane);
                    }
                    self.serve_one_of(lane);
                    standby.take_back();
                }
                if entered {
                    self.pool.leave(lane);
                }
            }
        }
        standby.lower_waiting(self.lane.threads.policy);
        self.resume_own_policy();
    }

    /// Takes the scheduling of its own lane again, if it may have another.
    #[inline]
    fn resume_own_policy(&mut self) {
        // If it fails, it tries again after its next request.
        self.is_lent = self.is_lent && !self.run_as(self.lane);
    }

    /// Takes the scheduling and the priority of a lane's threads; false if the host refuses.
    fn run_as(&mut self, lane: &Lane) -> bool {
        self.is_lent = true;
        lane.priority.is_some_and(|priority| {
            let moved = self.workspace.priority.move_to_lane(&self.orb.rt, priority);
            moved.is_ok()
        })
    }

    /// Repeats a call that was meant for a lane's own threads, to the thread that waits by then.
    fn repeat_call_of(&self, lane: &Lane) {
        if let Some(standby) = &lane.standby {
            standby.clear_call();
            standby.lower_waiting(lane.threads.policy);
        }
        self.pool.repeat_calls(lane);
    }

    fn serve_one_of(&mut self, lane: &Lane) {
        match &lane.queue {
            None => {
                let mut room = [MaybeUninit::uninit()];
                let event = lane.wait(&mut room, Some(0)).first();
                // More requests may wait there.
                self.pool.watch_while_busy(lane);
                match event.and_then(|event| lane.event(event)) {
                    Some(Event::Help) => self.repeat_call_of(lane),
                    None => {}
                    Some(event) => self.serve(lane, event),
                }
            }
            Some(queue) => {
                let job = queue.next_now();
                if !queue.is_empty() {
                    self.pool.ask_for_help(lane);
                }
                match job {
                    Some(Job::Help) => self.repeat_call_of(lane),
                    None => {}
                    Some(job) => self.serve_queued(queue, job),
                }
            }
        }
    }
}

//! A thread of a lane that may get help or lend its threads: it waits, serves, and helps more urgent lanes.

use super::borrowing::Standby;
use super::lane::{Lane, Source};
use super::lane_server::LaneServer;
use super::request_queue::Job;
use super::request_room::QueuedRequest;
use crate::server::Event;
use core::mem::MaybeUninit;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::ring::PopError;

/// A thread that other lanes may call.
pub(super) struct LaneThread<'p> {
    server: LaneServer<'p>,
    standby: &'p Standby,
    /// Its number in the lane.
    place: u32,
    lifetime: Lifetime,
    /// It may have the scheduling of another lane.
    is_lent: bool,
}

/// When a thread of a lane ends before its pool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Never.
    Static,
    /// After it has been idle for this time.
    Dynamic { idle_ns: u64 },
}

/// The result of waiting for work.
enum Waited {
    Event(Event),
    Request(QueuedRequest),
    /// A more urgent lane needs a thread.
    Call,
    /// The event loop has handled the event.
    Nothing,
    /// The idle time of a dynamic thread has passed, or a signal came.
    Idle,
    /// The pool is stopped.
    Stopped,
}

impl<'p> LaneThread<'p> {
    pub(super) fn new(
        server: LaneServer<'p>,
        standby: &'p Standby,
        place: u32,
        lifetime: Lifetime,
    ) -> Self {
        Self {
            server,
            standby,
            place,
            lifetime,
            is_lent: false,
        }
    }

    /// Serves until the pool is stopped. A dynamic thread also ends after it was idle for too long.
    pub(super) fn run(mut self) {
        let lane = self.server.lane;
        loop {
            self.begin_idle();
            let waited = self.wait();
            self.end_idle();
            if matches!(waited, Waited::Call) {
                self.help();
                continue;
            }
            self.return_to_own_lane();
            match waited {
                Waited::Event(event) => self.server.serve(lane, event),
                Waited::Request(queued) => self.serve_request(lane, queued),
                Waited::Idle if self.lifetime != Lifetime::Static => return,
                Waited::Idle | Waited::Nothing | Waited::Call => {}
                Waited::Stopped => return,
            }
        }
    }

    /// Waits for work of its own lane or for a call of another.
    #[inline]
    fn wait(&self) -> Waited {
        let lane = self.server.lane;
        let idle_ns = match self.lifetime {
            Lifetime::Static => None,
            Lifetime::Dynamic { idle_ns } => Some(idle_ns),
        };
        if let Source::Queue(queue) = &lane.source {
            return match queue.next(idle_ns.map(|idle_ns| monotonic_ns() + idle_ns)) {
                Ok(Job::Request(queued)) => Waited::Request(queued),
                Ok(Job::Help) => Waited::Call,
                Err(PopError::TimedOut) => Waited::Idle,
                Err(PopError::Closed) => Waited::Stopped,
            };
        }
        if self.server.pool.is_stopping() {
            return Waited::Stopped;
        }
        let mut room = [MaybeUninit::uninit()];
        match lane.wait(&mut room, idle_ns) {
            [] => Waited::Idle,
            [event, ..] => match lane.event(event) {
                Some(Event::Help) => Waited::Call,
                Some(event) => Waited::Event(event),
                None => Waited::Nothing,
            },
        }
    }

    /// Counts this thread as idle, once no borrowing lane wants it.
    #[inline]
    fn begin_idle(&mut self) {
        let (pool, lane) = (self.server.pool, self.server.lane);
        loop {
            if self.standby.begin_idle(self.place) {
                pool.watch_while_busy(lane);
            }
            let wants = |&number: &usize| pool.lanes[number].wants_help();
            if !self.standby.borrowers.iter().any(wants) {
                return;
            }
            self.end_idle();
            self.help();
        }
    }

    #[inline]
    fn end_idle(&mut self) {
        if self.standby.loans.end_idle() {
            self.server.pool.watch_while_busy(self.server.lane);
        }
        self.is_lent |= self.standby.take_raised(self.place);
    }

    /// Prepares to work for its own lane: repeats unanswered calls of other lanes, and takes the scheduling of its own.
    #[inline]
    fn return_to_own_lane(&mut self) {
        self.server.pool.repeat_calls(self.server.lane);
        self.resume_own_policy();
    }

    /// Serves one request of each more urgent lane that wants help.
    #[cold]
    fn help(&mut self) {
        let (standby, pool) = (self.standby, self.server.pool);
        standby.loans.respond();
        for &number in &standby.borrowers {
            let lane = &pool.lanes[number];
            if lane.wants_help() {
                let entered = lane.enter();
                // It is raised before it claims the help: from then on, no thread in between delays it.
                let is_urgent = entered && self.run_as(lane);
                if lane.standby.as_ref().is_some_and(|it| it.loans.claim()) && is_urgent {
                    standby.loans.lend();
                    if self.server.lane.lacks_thread() {
                        pool.ask_for_help(self.server.lane);
                    }
                    self.serve_one_of(lane);
                    standby.loans.take_back();
                }
                if entered {
                    pool.leave(lane);
                }
            }
        }
        standby.lower_waiting(self.server.lane.threads.policy);
        self.resume_own_policy();
    }

    /// Serves one event or request of a more urgent lane, if there is one.
    fn serve_one_of(&mut self, lane: &Lane) {
        let pool = self.server.pool;
        if let Source::Queue(queue) = &lane.source {
            let job = queue.next_now();
            if !queue.is_empty() {
                pool.ask_for_help(lane);
            }
            return match job {
                Some(Job::Help) => self.repeat_call_of(lane),
                Some(Job::Request(queued)) => self.serve_request(lane, queued),
                None => {}
            };
        }
        let mut room = [MaybeUninit::uninit()];
        let event = lane.wait(&mut room, Some(0)).first();
        // More requests may wait there.
        pool.watch_while_busy(lane);
        match event.and_then(|event| lane.event(event)) {
            Some(Event::Help) => self.repeat_call_of(lane),
            Some(event) => self.server.serve(lane, event),
            None => {}
        }
    }

    fn serve_request(&mut self, lane: &Lane, queued: QueuedRequest) {
        if let Source::Queue(queue) = &lane.source {
            queue.room.serve(queued, &mut self.server.workspace);
        }
    }

    /// Repeats a call that was meant for a lane's own threads, to the thread that waits by then.
    fn repeat_call_of(&self, lane: &Lane) {
        if let Some(standby) = &lane.standby {
            standby.loans.respond();
            standby.lower_waiting(lane.threads.policy);
        }
        self.server.pool.repeat_calls(lane);
    }

    /// Takes the scheduling of its own lane again, if it may have another.
    #[inline]
    fn resume_own_policy(&mut self) {
        // If it fails, it tries again after its next request.
        self.is_lent = self.is_lent && !self.run_as(self.server.lane);
    }

    /// Takes the scheduling and the priority of a lane's threads; returns false if the host refuses.
    fn run_as(&mut self, lane: &Lane) -> bool {
        self.is_lent = true;
        lane.priority.is_some_and(|priority| {
            let thread = &mut self.server.workspace.priority;
            thread.move_to_lane(&self.server.orb.rt, priority).is_ok()
        })
    }
}

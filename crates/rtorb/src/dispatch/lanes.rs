//! Lanes of threads: each priority has threads, listening endpoints and connections of its own (TAO, P1 2.2.2).
//!
//! A thread runs the loop of [`reactive`](super::reactive), or of [`worker_pool`](super::worker_pool) if a queue is before its lane.
//! If lanes may get help or lend threads ([`borrowing`](super::pool::borrowing)), it helps more urgent lanes while it waits.

use super::pool::borrowing::Standby;
use super::pool::lane::{Lane, Source};
use super::pool::request_queue::Job;
use super::pool::request_room::QueuedRequest;
use super::pool::{Intake, LaneConfig, PoolConfig};
use super::reactive;
use super::serve::{LaneServer, ReadableClient, Serve};
use crate::realtime::{ThreadpoolId, ThreadpoolLane};
use crate::server::{Event, ServerCore};
use core::mem::MaybeUninit;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::ring::PopError;

/// The lanes; without any there is one lane with the scheduling of the server's threads.
pub(super) fn config(orb: &ServerCore, lanes: &[ThreadpoolLane]) -> PoolConfig {
    let name = |number| LaneConfig::name(ThreadpoolId::OWN, number);
    let configs = (0..)
        .zip(lanes)
        .map(|(number, lane)| LaneConfig::of_lane(name(number), lane, orb.server_threads.clone()));
    let configs = if lanes.is_empty() {
        vec![LaneConfig::plain(orb, &name(0), 1)]
    } else {
        configs.collect()
    };
    PoolConfig {
        has_lanes: !lanes.is_empty(),
        ..PoolConfig::own(configs, Intake::Direct)
    }
}

/// A thread of a lane that may get help or lend its threads.
pub(super) struct LaneThread<'p> {
    server: LaneServer<'p>,
    standby: &'p Standby,
    /// Its number in the lane.
    place: u32,
    /// The time after which an idle thread ends, if it is dynamic.
    idle_ns: Option<u64>,
    /// It may have the scheduling of another lane.
    is_lent: bool,
    /// It has waited for the last time.
    is_over: bool,
}

/// What a thread does next.
enum Work {
    Event(Event),
    Request(QueuedRequest),
    /// It helps a more urgent lane.
    Help,
    /// Nothing: the event loop has handled the event.
    Nothing,
    /// Nothing: the timeout has passed, or a signal came.
    Idle,
    /// It ends: the pool is stopped.
    End,
}

impl<'p> LaneThread<'p> {
    pub(super) fn new(
        server: LaneServer<'p>,
        standby: &'p Standby,
        place: u32,
        idle_ns: Option<u64>,
    ) -> Self {
        Self {
            server,
            standby,
            place,
            idle_ns,
            is_lent: false,
            is_over: false,
        }
    }

    /// Waits for work of its own lane, and helps more urgent lanes meanwhile. `None` when the thread is to end.
    #[inline]
    fn await_work(&mut self) -> Option<Work> {
        loop {
            self.begin_idle();
            let work = self.wait_at(self.server.lane, self.idle_ns);
            self.end_idle();
            if matches!(work, Work::Help) {
                self.help();
                continue;
            }
            self.return_to_own_lane();
            return match work {
                Work::End => None,
                Work::Idle if self.idle_ns.is_some() => None,
                work => Some(work),
            };
        }
    }

    /// Waits for work of a lane, at most `timeout_ns`.
    #[inline]
    fn wait_at(&self, lane: &Lane, timeout_ns: Option<u64>) -> Work {
        if let Source::Queue(queue) = &lane.source {
            return match queue.next(timeout_ns.map(|timeout_ns| monotonic_ns() + timeout_ns)) {
                Ok(Job::Request(queued)) => Work::Request(queued),
                Ok(Job::Help) => Work::Help,
                Err(PopError::TimedOut) => Work::Idle,
                Err(PopError::Closed) => Work::End,
            };
        }
        if self.server.is_stopping() {
            return Work::End;
        }
        let mut room = [MaybeUninit::uninit()];
        match lane.wait(&mut room, timeout_ns) {
            [] => Work::Idle,
            [event, ..] => match lane.event(event) {
                Some(Event::Help) => Work::Help,
                Some(event) => Work::Event(event),
                None => Work::Nothing,
            },
        }
    }

    /// Does the work of a lane, its own or one that it helps. Passes a connection that can be read to `read`.
    #[inline]
    fn work(
        &mut self,
        lane: &'p Lane,
        work: Work,
        read: impl FnOnce(&mut Self, ReadableClient<'p>),
    ) {
        match (work, &lane.source) {
            (Work::Event(Event::Connection(token, readiness)), _) => {
                if let Some(client) = ReadableClient::of(lane, token, readiness) {
                    read(self, client);
                }
            }
            (Work::Event(event), _) => self.server.handle(lane, event),
            (Work::Request(queued), Source::Queue(queue)) => {
                queue.room.serve(queued, &mut self.server.workspace);
            }
            _ => {}
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
    fn serve_one_of(&mut self, lane: &'p Lane) {
        let work = self.wait_at(lane, Some(0));
        // More requests may wait there.
        self.server.pool.find_help_for_rest(lane);
        match work {
            Work::Help => self.repeat_call_of(lane),
            work => self.work(lane, work, reactive::serve),
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

impl<'p> Serve for LaneThread<'p> {
    type Client = ReadableClient<'p>;
    type Request = QueuedRequest;

    fn is_stopping(&self) -> bool {
        self.is_over
    }

    #[inline]
    fn wait(&mut self, read: impl FnMut(&mut Self, ReadableClient<'p>)) {
        match self.await_work() {
            Some(work) => self.work(self.server.lane, work, read),
            None => self.is_over = true,
        }
    }

    #[inline(always)]
    fn serve(&mut self, client: &ReadableClient<'p>) -> bool {
        self.server.serve(client)
    }

    #[inline(always)]
    fn call(&mut self, client: &ReadableClient<'p>) {
        self.server.call(client);
    }

    #[inline]
    fn next(&mut self) -> Option<QueuedRequest> {
        loop {
            if let Work::Request(queued) = self.await_work()? {
                return Some(queued);
            }
        }
    }

    #[inline]
    fn answer(&mut self, queued: QueuedRequest) {
        self.server.answer(queued);
    }
}

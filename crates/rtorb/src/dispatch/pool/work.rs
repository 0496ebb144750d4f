//! What a thread of a lane does: it waits, serves, and helps more urgent lanes.

use super::Pool;
use super::connection::Connection;
use super::events::Event;
use super::lane::Lane;
use super::queue::{Job, Queue};
use super::relief::Standby;
use super::threads::Stay;
use crate::orb::OrbCore;
use crate::server::{TakenRequest, Workspace};
use rtorb_os::clock::monotonic_ns;
use std::sync::Arc;

/// A thread at work.
pub(super) struct LaneThread<'p> {
    orb: &'p Arc<OrbCore>,
    pub(super) pool: &'p Pool,
    lane: &'p Lane,
    stay: Stay,
    pub(super) workspace: Workspace,
    /// The request that it serves, where that is taken out of its connection.
    pub(super) request: TakenRequest,
}

/// Whether a thread is still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Yes,
    No,
}

impl<'p> LaneThread<'p> {
    pub(super) fn new(orb: &'p Arc<OrbCore>, pool: &'p Pool, lane: &'p Lane, stay: Stay) -> Self {
        Self {
            orb,
            pool,
            lane,
            stay,
            workspace: lane.workspace(),
            request: TakenRequest::with_room(),
        }
    }

    /// Serves until the pool is stopped; a dynamic thread until it was idle for too long.
    pub(super) fn run(mut self) {
        let mut needed = Needed::Yes;
        while needed == Needed::Yes && !self.pool.is_stopping() {
            needed = match &self.lane.queue {
                None => self.serve_event(),
                Some(queue) => self.serve_job(queue),
            };
        }
    }

    fn serve_event(&mut self) -> Needed {
        self.begin_idle();
        let event = self.lane.events.next(self.stay.idle_ns());
        self.end_idle();
        match event {
            Some(event) => self.serve(self.lane, event),
            None if self.stay != Stay::Static => return Needed::No,
            None => {}
        }
        Needed::Yes
    }

    fn serve_job(&mut self, queue: &Queue) -> Needed {
        let deadline_ns = self.stay.idle_ns().map(|idle_ns| monotonic_ns() + idle_ns);
        self.begin_idle();
        let job = queue.next(deadline_ns);
        self.end_idle();
        match job {
            Ok(job) => self.serve_queued(queue, job),
            // The time of a dynamic thread, or of the pool, is over.
            Err(_) => return Needed::No,
        }
        Needed::Yes
    }

    fn serve(&mut self, lane: &Lane, event: Event) {
        match event {
            Event::Connection(key, told) => Connection::serve(self, (lane, key), told),
            Event::Listener(number) => lane.accept(self.orb, number),
            Event::Help => self.help(),
            Event::Stop => {}
        }
    }

    fn serve_queued(&mut self, queue: &Queue, job: Job) {
        match job {
            Job::Help => self.help(),
            Job::Request(..) if self.pool.is_stopping() => {}
            Job::Request(session, request) => {
                // A connection that breaks is shut, and who reads it learns that.
                let _ = request.serve(&session, &mut self.workspace);
                queue.served(request);
            }
        }
    }

    /// Counts this thread as idle, when no lane that it lends itself to wants it.
    #[inline]
    fn begin_idle(&mut self) {
        let Some(standby) = &self.lane.standby else {
            return;
        };
        loop {
            if standby.begin_idle() {
                self.pool.settle(self.lane);
            }
            let wants = |&number: &usize| self.pool.lanes[number].is_wanting();
            if !standby.borrowers.iter().any(wants) {
                return;
            }
            self.end_idle();
            self.help();
        }
    }

    #[inline]
    fn end_idle(&self) {
        if self.lane.standby.as_ref().is_some_and(Standby::end_idle) {
            self.pool.settle(self.lane);
        }
    }

    /// Serves one request of each more urgent lane that wants help.
    #[cold]
    fn help(&mut self) {
        let Some(standby) = &self.lane.standby else {
            return;
        };
        for &number in &standby.borrowers {
            let lane = &self.pool.lanes[number];
            if lane.standby.as_ref().is_some_and(Standby::answer) && lane.enter() {
                if self.run_as(lane) {
                    self.serve_one_of(lane);
                    self.run_as(self.lane);
                }
                lane.leave();
            }
        }
    }

    /// Takes the scheduling and the priority of a lane's threads; false if the host refuses.
    fn run_as(&mut self, lane: &Lane) -> bool {
        lane.priority.is_some_and(|priority| {
            let moved = self.workspace.priority.move_to_lane(&self.orb.rt, priority);
            moved.is_ok()
        })
    }

    fn serve_one_of(&mut self, lane: &Lane) {
        match &lane.queue {
            None => {
                let event = lane.events.next(Some(0));
                // More may wait there.
                self.pool.settle(lane);
                match event {
                    // Its own lane's calls for help come again: whoever gets idle looks for them.
                    Some(Event::Help) | None => {}
                    Some(event) => self.serve(lane, event),
                }
            }
            Some(queue) => {
                let job = queue.next_now();
                if !queue.is_empty() {
                    self.pool.ask_for_help(lane);
                }
                match job {
                    Some(Job::Help) | None => {}
                    Some(job) => self.serve_queued(queue, job),
                }
            }
        }
    }
}

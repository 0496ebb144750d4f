//! The bounded queue of a lane that serves requests in the order of their urgency, on several levels, or sheds requests in the order of
//! their arrival.
//!
//! One lock guards the [levels](super::levels), with priority inheritance. It is held while a request is put into or taken out of a
//! heap, and never while a thread waits, is woken, or serves. A thread waits for its next request at a ring of its own.

#[cfg(test)]
mod tests;

use super::levels::{Levels, Start};
use super::request_room::{Buffering, QueuedRequest, RequestRoom};
use super::urgency::Importance;
use crate::clock::monotonic_ns;
use crate::deadline::NONE_NS;
use crate::limits::Limits;
use crate::server::{Session, TakenRequest, Workspace};
use crate::strategies::RequestOrder;
use crate::timing::{Criticality, TimingCounters};
use rtorb_os::ring::{PopError, PushError, Ring};
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// The requests of a lane with levels: those that run and those that wait.
#[derive(Debug)]
pub(crate) struct DeadlineQueue {
    pub(crate) room: RequestRoom,
    order: RequestOrder,
    levels: Mutex<Levels<QueuedRequest>>,
    /// Where the thread of each level gets the request that begins next.
    begun: Box<[Ring<QueuedRequest>]>,
}

impl DeadlineQueue {
    /// Makes an empty queue for that number of levels; its bounds are at most those of the ORB's limits.
    pub(crate) fn new(
        order: RequestOrder,
        buffering: Buffering,
        levels: u32,
        limits: &Limits,
    ) -> Self {
        let room = RequestRoom::new(buffering, levels, limits);
        let (count, waiting_max) = (levels as usize, room.capacity());
        let state = if order.has_levels() {
            Levels::new(count, waiting_max)
        } else {
            Levels::parallel(count, waiting_max)
        };
        Self {
            order,
            levels: Mutex::new(state),
            begun: (0..levels).map(|_| Ring::new(1)).collect(),
            room,
        }
    }

    /// True if each thread has a priority of its own.
    pub(crate) fn has_levels(&self) -> bool {
        self.order.has_levels()
    }

    /// Adds `request`, and replaces it by memory for the next one. Wakes the thread of a level if the request begins now.
    ///
    /// Without room, takes the place of a request that has expired, sheds less critical requests, or replies TRANSIENT 1; counts each.
    pub(crate) fn put(
        &self,
        session: &Arc<Session>,
        request: &mut TakenRequest,
        workspace: &mut Workspace,
    ) {
        if !RequestRoom::take_place(session, request, workspace) {
            return;
        }
        let importance = self.importance(session, request, workspace);
        let levels = self.begun.len() as u32;
        loop {
            if let Some(queued) = self.room.admit(session, request, levels) {
                let start = self.levels.lock().arrive(importance, queued);
                return self.begin(start, workspace);
            }
            if let Some(expired) = self.take_expired(&session.orb.timing) {
                self.room.expire(expired, workspace);
                continue;
            }
            match self.take_less_critical(importance.criticality, request) {
                Some(shed) => self.room.shed(shed, workspace),
                None => return RequestRoom::refuse(session, request, workspace),
            }
        }
    }

    /// Takes out the next request of a level, and waits for it. Fails when the queue is closed.
    pub(crate) fn next(&self, level: usize) -> Result<QueuedRequest, PopError> {
        self.begun[level].pop_until(None)
    }

    /// Serves a request on the thread of its level. Returns the request that begins next on this level, if there is one.
    pub(crate) fn serve(
        &self,
        level: usize,
        queued: QueuedRequest,
        workspace: &mut Workspace,
    ) -> Option<QueuedRequest> {
        self.room.note_taken(&queued.request);
        self.room.serve(queued, workspace);
        match self.end(level)? {
            next if next.level == level => Some(next.job),
            elsewhere => {
                self.begin(Some(elsewhere), workspace);
                None
            }
        }
    }

    /// Accepts no more requests. Each thread ends when it has served what it has, and what waits for it.
    pub(crate) fn close(&self) {
        self.begun.iter().for_each(Ring::close);
    }

    /// Drops the requests that will not be served any more.
    pub(crate) fn clear(&self) {
        while self.levels.lock().pop().is_some() {}
        for begun in &self.begun {
            while begun.pop().is_some() {}
        }
    }

    /// Takes out a request that waits and has expired, if the ORB refuses such. One at a time, so that a new request waits for few replies.
    #[cold]
    fn take_expired(&self, timing: &TimingCounters) -> Option<QueuedRequest> {
        if !timing.settings.enforces_deadlines {
            return None;
        }
        let now_ns = monotonic_ns();
        let has_expired = |queued: &QueuedRequest| queued.request.deadline_ns() <= now_ns;
        self.levels.lock().take_job(has_expired)
    }

    /// Takes out the least critical request that waits, if it is less critical than `than`, and if `request` has room without all of
    /// those.
    #[cold]
    fn take_less_critical(
        &self,
        than: Criticality,
        request: &TakenRequest,
    ) -> Option<QueuedRequest> {
        let mut levels = self.levels.lock();
        let is_enough = self.room.would_fit(request, levels.less_critical(than));
        is_enough.then(|| levels.shed(than)).flatten()
    }

    /// How urgent and how critical a request is that has just arrived. Its operation is looked up only if any is annotated.
    fn importance(
        &self,
        session: &Session,
        request: &TakenRequest,
        workspace: &mut Workspace,
    ) -> Importance {
        let deadline_ns = request.deadline_ns();
        // No operation that this ORB serves is annotated if the time of arrival does not matter.
        if request.arrived_ns() == 0 {
            return Importance::new(self.order, deadline_ns, None);
        }
        let timing = request.examine(session, workspace, |object, _, header| {
            Ok(object.and_then(|object| object.servant.timing(header.operation)))
        });
        let timing = timing.ok().flatten();
        let of_operation = || timing?.deadline_ns?.checked_add(request.arrived_ns());
        let deadline_ns = match deadline_ns {
            NONE_NS => of_operation().unwrap_or(NONE_NS),
            deadline_ns => deadline_ns,
        };
        Importance::new(self.order, deadline_ns, timing)
    }

    fn end(&self, level: usize) -> Option<Start<QueuedRequest>> {
        self.levels.lock().end(level)
    }

    /// Passes a request to the thread of its level.
    ///
    /// A ring has room, because its level had no request. If the ring is closed, the request and those that would follow are withdrawn.
    fn begin(&self, mut start: Option<Start<QueuedRequest>>, workspace: &mut Workspace) {
        while let Some(Start { level, job }) = start {
            let (is_closed, refused) = match self.begun[level].push(job) {
                Ok(()) => return,
                Err(PushError::Full(refused)) => (false, refused),
                Err(PushError::Closed(refused)) => (true, refused),
            };
            self.room.withdraw(refused, is_closed, workspace);
            start = self.end(level);
        }
    }
}

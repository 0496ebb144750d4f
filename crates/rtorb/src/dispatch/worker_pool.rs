//! One I/O thread reads all requests into one queue, from which a pool of threads takes them (CORBAplus, P1 2.2.2).
//!
//! Each request changes threads once. A request of high priority waits behind all that arrived before it.

use super::pool::connection::TURN_MAX;
use super::pool::deadline_queue::DeadlineQueue;
use super::pool::lane::{Lane, Source};
use super::pool::request_room::RequestRoom;
use super::pool::{Buffering, Intake, LaneConfig, PoolConfig};
use super::serve::{LaneServer, ReadableClient, Serve};
use crate::exception::SystemException;
use crate::server::{Next, Readiness, ServerCore, Session};
use crate::thread_state::THREAD;
use std::sync::Arc;

/// A lane of `threads` threads behind a queue.
pub(super) fn config(orb: &ServerCore, threads: u32) -> PoolConfig {
    let lane = LaneConfig::plain(orb, "rtorb-worker", threads);
    let buffering = Buffering {
        bounds_connections: true,
        ..Buffering::default()
    };
    PoolConfig::own(vec![lane], Intake::Queue(buffering))
}

/// The loop of the I/O thread: it reads all connections of a lane, and puts the requests into queues.
pub(super) fn read(thread: LaneServer<'_>, room: &RequestRoom) {
    if thread.orb.client.core.sharing.bidirectional().is_some() {
        // Then it must not wait for a reply itself.
        THREAD.with(|thread| thread.reads_replies.set(true));
        let lane = thread.lane;
        read_for::<true>(thread, room);
        // No thread reads the replies to calls of this ORB over these connections any longer.
        return lane.server.end_calls();
    }
    read_for::<false>(thread, room);
}

/// As [`read`]; `BIDIRECTIONAL` if replies come too.
fn read_for<const BIDIRECTIONAL: bool>(mut thread: LaneServer<'_>, room: &RequestRoom) {
    while !thread.pool.is_stopping() {
        thread.wait(|thread, client| thread.queue_requests::<BIDIRECTIONAL>(&client, room));
    }
}

/// The loop of a thread that takes requests from the queue of its lane and serves them, until the queue is closed and empty.
pub(super) fn work(mut thread: impl Serve) {
    while let Some(request) = thread.next() {
        thread.answer(request);
    }
}

/// The loop of a thread that serves the requests of one level of a lane, until the queue is closed and has none for this level.
pub(super) fn work_at_level(mut thread: LaneServer<'_>, queue: &DeadlineQueue, level: usize) {
    while let Ok(first) = queue.next(level) {
        let mut next = Some(first);
        while let Some(queued) = next {
            next = queue.serve(level, queued, &mut thread.workspace);
        }
    }
}

impl<'p> LaneServer<'p> {
    /// Queues the requests that a connection has received, for one turn.
    fn queue_requests<const BIDIRECTIONAL: bool>(
        &mut self,
        client: &ReadableClient<'p>,
        room: &RequestRoom,
    ) {
        let connection = &client.connection;
        let session = &connection.session;
        if client.readiness == Readiness::Requested {
            // Before it is read: a serving thread may request the next event at any time from then on.
            session.end_request();
            self.queue_due::<BIDIRECTIONAL>(session, room);
        }
        // No other thread reads, so it is not locked, and no event is marked.
        let Some(mut reader) = connection.enter(client.readiness) else {
            return;
        };
        for _ in 0..TURN_MAX {
            if is_paused::<BIDIRECTIONAL>(session, room) {
                return;
            }
            let (workspace, request) = (&mut self.workspace, &mut self.request);
            match reader.take_one::<BIDIRECTIONAL>(workspace, request, connection) {
                (Next::Done, has_more) => {
                    self.queue(session);
                    if !has_more {
                        return;
                    }
                }
                (Next::Incomplete, _) => return,
                (Next::Over, _) => return self.end(client),
            }
        }
        session.request_report();
    }

    /// Queues the held requests of a connection that can be served now.
    #[cold]
    fn queue_due<const BIDIRECTIONAL: bool>(&mut self, session: &Arc<Session>, room: &RequestRoom) {
        while session.has_due() && !is_paused::<BIDIRECTIONAL>(session, room) {
            let Some(held) = session.orb.held.take_due(session, &mut self.request) else {
                return;
            };
            self.queue(session);
            drop(held);
        }
    }

    /// Queues the request that was taken out, or replies TRANSIENT 1 if there is no room.
    fn queue(&mut self, session: &Arc<Session>) {
        match self.route(session) {
            Ok(lane) => {
                let (request, workspace) = (&mut self.request, &mut self.workspace);
                match &lane.source {
                    Source::Queue(queue) => {
                        queue.put(session, request, lane.thread_count(), workspace);
                    }
                    Source::Levels(queue) => queue.put(session, request, workspace),
                    Source::PerRequest(threads) => {
                        threads.start(session, request, &lane.threads, workspace);
                    }
                    Source::Events | Source::Leader(_) => {}
                }
                if lane.lacks_thread() {
                    self.pool.ask_for_help(lane);
                }
            }
            Err(exception) => self
                .request
                .refuse(session, &mut self.workspace, &exception),
        }
    }

    /// Returns the lane that is to serve the request.
    fn route(&mut self, session: &Session) -> Result<&'p Lane, SystemException> {
        match &self.pool.config.intake {
            Intake::Routed { route, .. } => {
                let number = route.0(session, &self.request, &mut self.workspace)?;
                Ok(&self.pool.lanes[number])
            }
            _ => Ok(self.lane),
        }
    }
}

/// Returns true if nothing of a connection is queued until its client has taken its replies, or has fewer requests in the queue.
#[inline(always)]
fn is_paused<const BIDIRECTIONAL: bool>(session: &Session, room: &RequestRoom) -> bool {
    // A bidirectional connection is always read: calls that occupy the threads may wait for replies there.
    let is_read_always = BIDIRECTIONAL && session.is_bidirectional();
    !is_read_always && (session.state.has_unsent() || room.holds(session))
}

#[cfg(test)]
mod tests {
    use super::super::serve::tests::Script;
    use super::super::serve::tests::Step::{Answer, Wait};
    use super::*;

    #[test]
    fn a_worker_answers_one_request_after_the_other_until_its_queue_is_closed() {
        let mut script = Script::new([], || true);
        script.queued = [1, 2].into();
        work(&mut script);
        let steps: Vec<_> = script.steps.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [Wait, Answer(1), Wait, Answer(2), Wait]);
    }
}

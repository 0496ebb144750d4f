//! The requests of a shared connection that wait until the connection's own thread sends them.

use crate::wait::connection_thread::MessageInProgress;
use rtorb_wire::Writer;
use rtorb_wire::connection::{Outbox, OutboxError};
use std::collections::VecDeque;

/// A queue of requests, oldest first, with a bound on their number and on their bytes.
#[derive(Debug)]
pub(super) struct SendQueue {
    requests: VecDeque<UnsentRequest>,
    /// The bytes of all requests, in the same order.
    outbox: Outbox,
    requests_max: usize,
    /// More memory than this is given back when the queue is empty.
    idle_bytes_max: usize,
    oldest: RequestProgress,
}

/// The progress of sending a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestProgress {
    /// Nothing of it is sent.
    Unsent,
    /// The thread is sending it now.
    BeingSent,
    /// A part of it is sent, and the socket is full.
    Stuck,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnsentRequest {
    pub(super) request_id: u32,
    /// True for a oneway: its thread waits only until it is sent.
    pub(super) is_oneway: bool,
    bytes: usize,
}

/// The bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueBounds {
    pub(super) requests_max: usize,
    pub(super) bytes_max: usize,
    /// More memory than this is given back when the queue is empty.
    pub(super) idle_bytes_max: usize,
}

/// The reason why a request was not added to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueError {
    /// The queue is full.
    Full,
    NoMemory,
}

impl SendQueue {
    /// Makes the queue of a connection whose callers send their own requests. It takes no memory.
    pub(super) const fn unused() -> Self {
        Self {
            requests: VecDeque::new(),
            outbox: Outbox::new(0),
            requests_max: 0,
            idle_bytes_max: 0,
            oldest: RequestProgress::Unsent,
        }
    }

    /// Makes an empty queue, with memory for the requests of a few threads.
    pub(super) fn new(bounds: QueueBounds) -> Self {
        Self {
            requests: VecDeque::with_capacity(REQUESTS_AT_FIRST),
            outbox: Outbox::new(bounds.bytes_max).with_memory(BYTES_AT_FIRST),
            requests_max: bounds.requests_max,
            idle_bytes_max: bounds.idle_bytes_max.max(BYTES_AT_FIRST),
            oldest: RequestProgress::Unsent,
        }
    }

    /// Adds a request at the end, in fragments of `fragment_bytes` if it is larger.
    pub(super) fn push(
        &mut self,
        request_id: u32,
        is_oneway: bool,
        message: &Writer<'_>,
        fragment_bytes: Option<usize>,
    ) -> Result<(), QueueError> {
        if self.requests.len() >= self.requests_max {
            return Err(QueueError::Full);
        }
        let before = self.outbox.len();
        let kept = match fragment_bytes {
            Some(max) if message.len() > max => self.outbox.keep_fragments(message, max),
            _ => self.outbox.keep(message, 0),
        };
        kept.map_err(|error| match error {
            OutboxError::NoMemory { .. } => QueueError::NoMemory,
            _ => QueueError::Full,
        })?;
        self.requests.push_back(UnsentRequest {
            request_id,
            is_oneway,
            bytes: self.outbox.len() - before,
        });
        Ok(())
    }

    /// Begins to send the oldest request: copies it to `message`. Returns false if the queue is empty.
    pub(super) fn begin(&mut self, message: &mut MessageInProgress) -> bool {
        let Some(oldest) = self.requests.front() else {
            return false;
        };
        message.begin(&self.outbox.unsent()[..oldest.bytes]);
        self.oldest = RequestProgress::BeingSent;
        true
    }

    /// Notes that the socket is full. If nothing of the oldest request is sent, that one can be removed again.
    pub(super) fn postpone(&mut self, has_begun: bool) {
        self.oldest = if has_begun {
            RequestProgress::Stuck
        } else {
            RequestProgress::Unsent
        };
    }

    /// Removes the request that was being sent.
    pub(super) fn finish(&mut self) -> Option<UnsentRequest> {
        if self.oldest == RequestProgress::Unsent {
            return None;
        }
        self.oldest = RequestProgress::Unsent;
        let sent = self.requests.pop_front()?;
        self.outbox.advance(sent.bytes);
        self.outbox.trim(self.idle_bytes_max);
        Some(sent)
    }

    /// Removes a request unless a part of it may be sent. Returns its progress; `None` if it is not in the queue.
    pub(super) fn give_up(&mut self, request_id: u32) -> Option<RequestProgress> {
        let mut skip = 0;
        for (place, request) in self.requests.iter().enumerate() {
            if request.request_id != request_id {
                skip += request.bytes;
                continue;
            }
            let progress = if place == 0 {
                self.oldest
            } else {
                RequestProgress::Unsent
            };
            if progress == RequestProgress::Unsent {
                self.outbox.withdraw(skip, request.bytes);
                self.requests.remove(place);
            }
            return Some(progress);
        }
        None
    }

    /// Removes the newest request unless a part of it may be sent.
    pub(super) fn give_up_newest(&mut self) -> Option<UnsentRequest> {
        let newest = *self.requests.back()?;
        let progress = self.give_up(newest.request_id)?;
        (progress == RequestProgress::Unsent).then_some(newest)
    }

    /// Returns the request of which a part is sent, if the socket takes no more.
    pub(super) fn stuck(&self) -> Option<u32> {
        let oldest = self.requests.front()?;
        (self.oldest == RequestProgress::Stuck).then_some(oldest.request_id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// The initial memory of a queue: small requests of a few threads make no heap call.
const REQUESTS_AT_FIRST: usize = 16;
const BYTES_AT_FIRST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_wire::giop::{MessageType, Version, begin_message, end_message};

    const BOUNDS: QueueBounds = QueueBounds {
        requests_max: 3,
        bytes_max: 1000,
        idle_bytes_max: 0,
    };

    fn message(number: u8, bytes: usize) -> Writer<'static> {
        let mut w = Writer::new(Vec::new(), 1 << 20);
        begin_message(&mut w, Version::V1_2, MessageType::Request).expect("it fits");
        (0..bytes).for_each(|_| w.primitive(number).expect("it fits"));
        end_message(&mut w).expect("it fits");
        w
    }

    fn push(queue: &mut SendQueue, number: u8) -> Result<(), QueueError> {
        queue.push(number.into(), false, &message(number, 8), None)
    }

    /// The number in the message that is sent next.
    fn send(queue: &mut SendQueue) -> Option<u8> {
        let mut message = MessageInProgress::default();
        queue.begin(&mut message).then(|| {
            assert_eq!(message.unsent().len(), 20);
            let sent = queue.finish().expect("it was begun");
            assert_eq!(sent.request_id, message.unsent()[12].into());
            message.unsent()[12]
        })
    }

    #[test]
    fn requests_are_sent_in_their_order_within_the_bounds() {
        let mut queue = SendQueue::new(BOUNDS);
        assert_eq!((send(&mut queue), queue.finish()), (None, None));
        for number in 1..=3 {
            assert_eq!(push(&mut queue, number), Ok(()));
        }
        assert_eq!(push(&mut queue, 4), Err(QueueError::Full));
        assert_eq!(send(&mut queue), Some(1));
        assert_eq!(push(&mut queue, 4), Ok(()));
        assert_eq!(
            [(); 4].map(|()| send(&mut queue)),
            [Some(2), Some(3), Some(4), None]
        );
        let large = message(5, 600);
        assert_eq!(queue.push(5, false, &large, None), Ok(()));
        assert_eq!(queue.push(6, false, &large, None), Err(QueueError::Full));
        assert!(push(&mut SendQueue::unused(), 1).is_err());
    }

    #[test]
    fn only_a_request_that_has_not_begun_is_removed() {
        let mut queue = SendQueue::new(BOUNDS);
        (1..=3).for_each(|number| push(&mut queue, number).expect("there is room"));
        let mut message = MessageInProgress::default();
        assert!(queue.begin(&mut message));
        assert_eq!(queue.give_up(1), Some(RequestProgress::BeingSent));
        assert_eq!(queue.stuck(), None);
        queue.postpone(true);
        assert_eq!(queue.stuck(), Some(1));
        assert_eq!(queue.give_up(1), Some(RequestProgress::Stuck));
        assert_eq!(queue.give_up(2), Some(RequestProgress::Unsent));
        assert_eq!(queue.give_up(2), None);
        queue.postpone(false);
        assert_eq!(queue.give_up(1), Some(RequestProgress::Unsent));
        assert_eq!(send(&mut queue), Some(3));
        assert!(queue.is_empty());
    }

    #[test]
    fn all_but_the_request_that_is_being_sent_are_removed() {
        let mut queue = SendQueue::new(BOUNDS);
        (1..=3).for_each(|number| push(&mut queue, number).expect("there is room"));
        assert!(queue.begin(&mut MessageInProgress::default()));
        let newest = |queue: &mut SendQueue| queue.give_up_newest().map(|it| it.request_id);
        assert_eq!(
            [(); 3].map(|()| newest(&mut queue)),
            [Some(3), Some(2), None]
        );
        assert_eq!(queue.finish().map(|it| it.request_id), Some(1));
        assert!(queue.is_empty() && queue.outbox.is_empty());
    }

    #[test]
    fn fragments_of_a_request_are_sent_as_one() {
        let mut queue = SendQueue::new(BOUNDS);
        let whole = message(7, 100);
        queue
            .push(7, true, &whole, Some(48))
            .expect("there is room");
        push(&mut queue, 8).expect("there is room");
        let mut message = MessageInProgress::default();
        assert!(queue.begin(&mut message) && message.unsent().len() > whole.len());
        assert!(queue.finish().is_some_and(|it| it.is_oneway));
        assert_eq!(send(&mut queue), Some(8));
    }
}

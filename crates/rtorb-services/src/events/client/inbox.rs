//! The queue between the thread that serves the channel's pushes and the thread that takes the events. The memory of events goes
//! round between the two.

use crate::events::event::{event_of, header};
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventHeader};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::SystemException;
use rtorb::cdr::{Decode, Reader};
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};

/// A received event. The default is an empty one.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The event.
    pub event: Event,
    /// The arrival time in nanoseconds of CLOCK_MONOTONIC.
    pub arrived_ns: u64,
    /// The number of events in the same push, with this one: more than 1 for the events of a conjunction.
    pub together: usize,
}

impl Default for Arrival {
    fn default() -> Self {
        Self {
            event: event_of(header(0, 0)),
            arrived_ns: 0,
            together: 0,
        }
    }
}

/// The result of waiting for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The caller's arrival has a new event.
    Event,
    /// No event came before the deadline.
    Nothing,
    /// No event will come: the channel has disconnected the receiver.
    Disconnected,
}

/// A bounded queue of arrivals. It counts the events that it has no room for.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The memory into which events are decoded. One thread at a time decodes, so events keep their order.
    coming: Mutex<Vec<Arrival>>,
    queued: Mutex<QueuedArrivals>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueuedArrivals {
    arrivals: BoundedQueue<Arrival>,
    /// Arrivals that were taken; their memory is reused.
    used: Vec<Arrival>,
    missed: u64,
}

impl Inbox {
    pub(super) fn new(events_max: usize) -> Self {
        Self {
            coming: Mutex::default(),
            queued: Mutex::new(QueuedArrivals {
                arrivals: BoundedQueue::new(events_max, usize::MAX),
                used: Vec::new(),
                missed: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Decodes the argument of a `push` and queues its events: all, or none if one is wrong.
    ///
    /// # Errors
    /// MARSHAL and similar if the bytes are not events.
    pub(super) fn put(&self, arguments: &mut Reader<'_>) -> Result<(), SystemException> {
        let arrived_ns = monotonic_ns();
        let body = arguments.remaining();
        arguments.buffer_up(body)?;
        let together = arguments.count(Event::BYTES_MIN)?;
        let mut coming = self.coming.lock();
        for place in 0..together {
            if place == coming.len() {
                coming.push(Arrival::default());
            }
            let arrival = &mut coming[place];
            read_over(&mut arrival.event, arguments)?;
            (arrival.arrived_ns, arrival.together) = (arrived_ns, together);
        }
        let mut queued = self.queued.lock();
        for arrival in &mut coming[..together] {
            if !queued.arrivals.has_room(0) {
                queued.missed += 1;
                continue;
            }
            let used = queued.used.pop().unwrap_or_default();
            let _ = (queued.arrivals).push(core::mem::replace(arrival, used), 0);
        }
        drop(queued);
        match together {
            0 => {}
            1 => self.changed.notify_one(&self.queued),
            _ => self.changed.notify_all(&self.queued),
        }
        coming.truncate(KEPT_MAX);
        Ok(())
    }

    /// Swaps `arrival` with the next one and keeps its memory.
    pub(super) fn take(
        &self,
        arrival: &mut Arrival,
        deadline_ns: u64,
        was_disconnected: &AtomicBool,
    ) -> Received {
        let mut queued = self.queued.lock();
        loop {
            if let Some(next) = queued.arrivals.pop() {
                let used = core::mem::replace(arrival, next);
                if queued.used.len() < KEPT_MAX && bytes(&used) <= KEPT_BYTES_MAX {
                    queued.used.push(used);
                }
                return Received::Event;
            }
            if was_disconnected.load(Ordering::Acquire) {
                return Received::Disconnected;
            }
            if monotonic_ns() >= deadline_ns {
                return Received::Nothing;
            }
            self.changed.wait_until(&mut queued, deadline_ns);
        }
    }

    /// Notes that no event will come any more.
    pub(super) fn close(&self, was_disconnected: &AtomicBool) {
        // Under the lock, so that a thread that is about to wait sees it.
        let queued = self.queued.lock();
        was_disconnected.store(true, Ordering::Release);
        drop(queued);
        self.changed.notify_all(&self.queued);
    }

    pub(super) fn missed(&self) -> u64 {
        self.queued.lock().missed
    }
}

/// Decodes an event into the memory of another.
fn read_over(event: &mut Event, r: &mut Reader<'_>) -> Result<(), SystemException> {
    event.header = EventHeader::decode(r)?;
    event.data.pad1 = i32::decode(r)?;
    let payload = r.octets()?;
    event.data.payload.clear();
    event.data.payload.extend_from_slice(payload);
    Ok(event.data.any_value.decode_over(r)?)
}

/// The capacity of an arrival's payload. Its any is of the same message, and so of similar size.
fn bytes(arrival: &Arrival) -> usize {
    arrival.event.data.payload.capacity()
}

/// The greatest number of unused arrivals.
const KEPT_MAX: usize = 256;

/// The largest event whose memory is kept: four times what a channel accepts by default.
const KEPT_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb::cdr::{ByteOrder, Encode, Writer};
    use rtorb_os::thread::thread_id;
    use rtorb_tests::asleep::until_asleep;
    use std::sync::mpsc;

    #[test]
    fn each_event_of_a_push_ends_the_wait_of_one_thread() {
        let inbox = Inbox::new(10);
        let is_closed = AtomicBool::new(false);
        let late_ns = monotonic_ns() + 20_000_000_000;
        let (tell, told) = mpsc::channel();
        let wait = |tell: mpsc::Sender<u32>| {
            let _ = tell.send(thread_id());
            // The test has all ids when no sender is left.
            drop(tell);
            let received = inbox.take(&mut Arrival::default(), late_ns, &is_closed);
            (received, monotonic_ns() < late_ns)
        };
        let received = std::thread::scope(|scope| {
            let waiting = [tell.clone(), tell].map(|tell| scope.spawn(|| wait(tell)));
            until_asleep(&told.iter().collect::<Vec<u32>>());
            let events = [event_of(header(16, 1)), event_of(header(16, 2))];
            let mut w = Writer::new(Vec::new(), 1 << 20);
            events[..].encode(&mut w).expect("it can be written");
            let bytes = w.to_bytes();
            let mut arguments = Reader::new(&bytes, ByteOrder::NATIVE);
            inbox.put(&mut arguments).expect("events");
            waiting.map(|waiting| waiting.join().expect("it returns"))
        });
        assert_eq!(received, [(Received::Event, true); 2]);
    }
}

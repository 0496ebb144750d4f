//! Events between the thread that a channel calls and the one that takes them, in memory that goes round between the two.

use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::SystemException;
use rtorb::any::Any;
use rtorb::cdr::{Decode, Reader};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};
use std::collections::VecDeque;

/// An event, and when it came; made anew, it is an empty one.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// What came.
    pub event: Event,
    /// When, of CLOCK_MONOTONIC in nanoseconds.
    pub arrived_ns: u64,
    /// How many events the channel pushed together with it, and it among them: more than 1 where all events of a
    /// conjunction come together.
    pub together: usize,
}

impl Default for Arrival {
    fn default() -> Self {
        Self {
            event: Event {
                header: EventHeader {
                    r#type: 0,
                    source: 0,
                    ttl: 0,
                    creation_time: 0,
                    ec_recv_time: 0,
                    ec_send_time: 0,
                },
                data: EventData {
                    pad1: 0,
                    payload: Vec::new(),
                    any_value: Any::NULL,
                },
            },
            arrived_ns: 0,
            together: 0,
        }
    }
}

/// What a receiver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// An event, which is in the caller's arrival now.
    Event,
    /// None came until then.
    Nothing,
    /// None will come: the channel has disconnected the receiver.
    Disconnected,
}

/// Arrivals that wait to be taken, at most so many; of others it is counted that they were missed.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Where events are read into before they wait. One thread at a time reads: events keep the order in which they came.
    coming: Mutex<Vec<Arrival>>,
    queued: Mutex<QueuedArrivals>,
    changed: Condvar,
    events_max: usize,
}

#[derive(Debug, Default)]
struct QueuedArrivals {
    arrivals: VecDeque<Arrival>,
    /// Taken before; their memory is for those that come.
    used: Vec<Arrival>,
    missed: u64,
}

impl Inbox {
    pub(super) fn new(events_max: usize) -> Self {
        Self {
            coming: Mutex::default(),
            queued: Mutex::default(),
            changed: Condvar::new(),
            events_max,
        }
    }

    /// Reads the argument of a `push`: all its events, or none where one of them is wrong.
    ///
    /// # Errors
    /// MARSHAL and its like, when the octets are no events.
    pub(super) fn put(&self, arguments: &mut Reader<'_>) -> Result<(), SystemException> {
        let arrived_ns = monotonic_ns();
        let body = arguments.remaining();
        arguments.buffer_up(body)?;
        let together = arguments.count(Event::OCTETS_MIN)?;
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
            match queued.arrivals.len() < self.events_max {
                true => {
                    let used = queued.used.pop().unwrap_or_default();
                    let whole = core::mem::replace(arrival, used);
                    queued.arrivals.push_back(whole);
                }
                false => queued.missed += 1,
            }
        }
        drop(queued);
        self.changed.notify_one(&self.queued);
        coming.truncate(KEPT_MAX);
        Ok(())
    }

    /// Takes the next arrival in the place of `arrival`, whose memory is used again.
    pub(super) fn take(
        &self,
        arrival: &mut Arrival,
        deadline_ns: u64,
        was_disconnected: &AtomicBool,
    ) -> Received {
        let mut queued = self.queued.lock();
        loop {
            if let Some(next) = queued.arrivals.pop_front() {
                let used = core::mem::replace(arrival, next);
                if queued.used.len() < KEPT_MAX && octets(&used) <= KEPT_OCTETS_MAX {
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

    /// Says that nothing will come any more.
    pub(super) fn close(&self, was_disconnected: &AtomicBool) {
        // Under the lock: who is about to wait must not miss it.
        let queued = self.queued.lock();
        was_disconnected.store(true, Ordering::Release);
        drop(queued);
        self.changed.notify_all(&self.queued);
    }

    pub(super) fn missed(&self) -> u64 {
        self.queued.lock().missed
    }
}

/// Reads an event in the place of another, into its memory.
fn read_over(event: &mut Event, r: &mut Reader<'_>) -> Result<(), SystemException> {
    event.header = EventHeader::decode(r)?;
    event.data.pad1 = i32::decode(r)?;
    let payload = r.octets()?;
    event.data.payload.clear();
    event.data.payload.extend_from_slice(payload);
    Ok(event.data.any_value.decode_over(r)?)
}

/// What an arrival's payload can hold; its any is of the same message, and so of the same order.
fn octets(arrival: &Arrival) -> usize {
    arrival.event.data.payload.capacity()
}

/// Arrivals whose memory is kept while none of them is needed.
const KEPT_MAX: usize = 256;

/// Octets of an event whose memory is kept: four times what a channel lets through by default.
const KEPT_OCTETS_MAX: usize = 64 << 10;

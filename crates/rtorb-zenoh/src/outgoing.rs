//! A lane: events of the channel, published at one priority by a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtorb_os::clock::{monotonic_ns, utc_offset};
use rtorb_services::events::client::{Arrival, Received, Receiver};
use zenoh::Wait;
use zenoh::bytes::Encoding;
use zenoh::key_expr::KeyExpr;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::Locality;

use crate::bands;
use crate::config::FederationCongestion;
use crate::keys::EventKey;
use crate::message::{SampleHeader, encode_event};
use crate::shared::Shared;
use crate::statistics::OutgoingStatistics;

/// The thread of a lane, for one connection to the channel.
pub(crate) struct LanePublisher {
    shared: Arc<Shared>,
    /// Its place among the lanes.
    place: usize,
    receiver: Receiver,
    /// The number of the connection.
    connection: u64,
    /// True when the connection ends.
    is_closing: Arc<AtomicBool>,
    /// Events that the receiver had no room for, as they were counted.
    missed: u64,
    quality: PublicationQuality,
}

/// How Zenoh carries the events of a lane.
#[derive(Clone, Copy)]
struct PublicationQuality {
    priority: Priority,
    congestion: CongestionControl,
    /// Sent at once, and not together with what follows.
    is_express: bool,
}

/// The fate of an event that the channel delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutgoingFate {
    Published,
    LoopedBack,
    Expired,
    Late,
    Large,
    Unsendable,
    NoKey,
    Refused,
}

impl LanePublisher {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        place: usize,
        receiver: Receiver,
        connection: u64,
        is_closing: &Arc<AtomicBool>,
    ) -> Self {
        let config = &shared.config;
        let priority = config.bands.zenoh(config.lanes[place].priority);
        Self {
            shared: Arc::clone(shared),
            place,
            receiver,
            connection,
            is_closing: Arc::clone(is_closing),
            missed: 0,
            quality: PublicationQuality {
                priority,
                congestion: match config.congestion {
                    FederationCongestion::Drop(_) => CongestionControl::Drop,
                    FederationCongestion::Block(_) => CongestionControl::Block,
                },
                is_express: bands::place(priority) < bands::place(Priority::Data),
            },
        }
    }

    /// Publishes until the connection ends; then also what waits.
    pub(crate) fn run(mut self) {
        let mut arrival = Arrival::default();
        let mut report_ns = 0;
        let period_ns = self.shared.config.report_every.as_nanos() as u64;
        while !self.is_closing.load(Ordering::Acquire) {
            let now_ns = monotonic_ns();
            if now_ns >= report_ns {
                self.report(self.quality.congestion);
                report_ns = now_ns + period_ns;
            }
            let look_ns = report_ns.min(now_ns + LOOK_EVERY_NS);
            match self.receiver.next(&mut arrival, look_ns) {
                Received::Event => self.publish(&mut arrival),
                Received::Nothing => self.count_missed(),
                Received::Disconnected => {
                    self.shared.work.lose(self.connection);
                    break;
                }
            }
        }
        // The channel counts what it does not deliver from now on.
        let _ = self.receiver.suspend();
        while self.receiver.next(&mut arrival, 0) == Received::Event {
            self.publish(&mut arrival);
        }
        self.count_missed();
        // No other follows, so a full link is waited for.
        self.report(CongestionControl::Block);
        // The channel may be gone.
        let _ = self.receiver.disconnect();
    }

    fn publish(&mut self, arrival: &mut Arrival) {
        let fate = self.send(arrival);
        self.shared.counts.outgoing(|counts| {
            counts.received += 1;
            *count_of(counts, fate) += 1;
        });
        self.count_missed();
    }

    fn send(&self, arrival: &mut Arrival) -> OutgoingFate {
        let shared = &self.shared;
        let event = &mut arrival.event;
        if event.data.pad1 == shared.mark {
            return OutgoingFate::LoopedBack;
        }
        if event.header.ttl <= 0 {
            return OutgoingFate::Expired;
        }
        let now_ns = monotonic_ns();
        let deadline_ns = (shared.config.deadline).map_or(0, |deadline| deadline.as_nanos() as u64);
        let waited_ns = now_ns.saturating_sub(arrival.arrived_ns);
        if deadline_ns > 0 && waited_ns >= deadline_ns {
            return OutgoingFate::Late;
        }
        event.header.ttl -= 1;
        event.data.pad1 = shared.mark;
        let Ok(payload) = encode_event(event) else {
            return OutgoingFate::Unsendable;
        };
        if payload.len() > shared.config.event_bytes_max {
            return OutgoingFate::Large;
        }
        let key = EventKey {
            event_type: event.header.r#type,
            source: event.header.source,
        };
        let mut numbers = shared.lanes[self.place].lock();
        let run = numbers.run();
        let declare = || {
            let key = KeyExpr::try_from(shared.keys.events(key)).ok()?;
            shared.session().declare_keyexpr(key).wait().ok()
        };
        let Some(published) = numbers.key(key, declare) else {
            return OutgoingFate::NoKey;
        };
        let header = SampleHeader {
            priority: shared.config.lanes[self.place].priority,
            run,
            index: published.take_number(),
            sent_ticks: utc_ticks(now_ns),
            deadline_ns: deadline_ns.saturating_sub(waited_ns),
        };
        let put = (shared.session())
            .put(&published.key_expr, payload)
            .encoding(Encoding::APPLICATION_CDR)
            .attachment(header.to_bytes())
            .priority(self.quality.priority)
            .congestion_control(self.quality.congestion)
            .express(self.quality.is_express)
            .allowed_destination(Locality::Remote)
            .wait();
        if put.is_err() {
            published.give_number_back();
            return OutgoingFate::Refused;
        }
        OutgoingFate::Published
    }

    /// Reports the numbers so far, behind the events: they have the same priority.
    fn report(&self, congestion: CongestionControl) {
        let shared = &self.shared;
        let report = shared.lanes[self.place].lock().report();
        // A report that is lost is followed by another.
        let _ = (shared.session())
            .put(shared.keys.own_reports(), report.to_bytes())
            .encoding(Encoding::APPLICATION_OCTET_STREAM)
            .priority(self.quality.priority)
            .congestion_control(congestion)
            .express(self.quality.is_express)
            .allowed_destination(Locality::Remote)
            .wait();
    }

    fn count_missed(&mut self) {
        let missed = self.receiver.missed();
        let more = missed - self.missed;
        if more > 0 {
            self.missed = missed;
            self.shared.counts.outgoing(|counts| {
                counts.received += more;
                counts.discarded_full += more;
            });
        }
    }
}

/// The time of UTC in units of 100 ns since 15 October 1582, at a time of the monotonic clock.
pub(crate) fn utc_ticks(now_ns: u64) -> u64 {
    utc_offset(now_ns).earliest_ticks + now_ns / 100
}

fn count_of(counts: &mut OutgoingStatistics, fate: OutgoingFate) -> &mut u64 {
    match fate {
        OutgoingFate::Published => &mut counts.published,
        OutgoingFate::LoopedBack => &mut counts.looped_back,
        OutgoingFate::Expired => &mut counts.expired,
        OutgoingFate::Late => &mut counts.discarded_late,
        OutgoingFate::Large => &mut counts.discarded_large,
        OutgoingFate::Unsendable => &mut counts.discarded_unsendable,
        OutgoingFate::NoKey => &mut counts.discarded_keys,
        OutgoingFate::Refused => &mut counts.discarded_refused,
    }
}

/// The longest wait between two looks for the end of the connection.
const LOOK_EVERY_NS: u64 = 50_000_000;

//! Whether any event is lost or comes twice that the policy does not say: by the numbers of a long sequence of events.

use std::time::Duration;

use super::route::Route;
use super::served;
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{RECEIPT_TIMEOUT, within};
use crate::contestants::event_channel::{Sending, Served};
use crate::contestants::square_wave::system::Role;
use crate::experiments::prelude::*;

pub(super) const STUDY: Study<Sequences> = Study {
    name: "sequences",
    title: "What becomes of the events of a long sequence",
    amounts: Amounts {
        glance: 2_000,
        emulated: 0,
        quick: [1, 50_000],
        full: [1, 10_000_000],
        samples: "events_in_sequence",
    },
    factors: &[Factor::texts(POLICY, &[LOSSLESS, "discarding"])],
    // Its sockets hold few events, so that they wait in the channel.
    fixed: "transport=unix, part=sequence",
    says: SAYS,
    ..Study::with(|_, _| Ok(Sequences))
};

/// A sequence for each policy: what the channel does with an event for which there is no room. Lossless: the supplier waits.
/// Discarding: the oldest one is discarded, and counted.
pub(super) struct Sequences;

impl Subject for Sequences {
    /// Sends the whole sequence in parts, as fast as the channel takes them.
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let (context, events) = (turn.context, turn.samples as u64);
        let mut served = Served {
            queue_events: QUEUE_EVENTS,
            ..served(context, &[Role::Low])
        };
        let is_lossless = cell.is(POLICY, LOSSLESS);
        let name = if is_lossless { LOSSLESS } else { "discarding" };
        served.wait_ms = served.wait_ms.filter(|_| is_lossless);
        let of = (Transport::Unix, name);
        let route = Route::start(context, of, (&served, Role::Low), [1, 0])?;
        let Route {
            mut channel,
            consumers: [mut consumer],
            mut supplier,
        } = route;
        if !is_lossless {
            consumer.work(WORK)?;
        }
        let mut sent = 0;
        while sent < events && !context.interrupted() {
            supplier.begin(&Sending {
                first: sent,
                ..Sending::paced(PART_EVENTS.min(events - sent), 0)
            })?;
            sent += supplier.finish(PART_TIMEOUT)?.count;
        }
        if context.interrupted() {
            return Err(LabError::Interrupted);
        }
        // What does not come is missed below.
        within(RECEIPT_TIMEOUT, || {
            Ok(consumer.received()?.1 + channel.discarded()? >= sent)
        })?;
        let found = consumer.latencies(0)?;
        let clients = [consumer.process(), supplier.process()];
        let scheduling = channel.scheduling(clients);
        let sequence = Sequence {
            is_lossless,
            sent,
            received: consumer.received()?.1,
            discarded: channel.discarded()?,
            lost: found.lost,
            repeated: found.repeated + found.malformed,
        };
        let count = |(name, count): (&str, u64)| {
            let labels = labels([("counted", name.into())]);
            (labels, count as f64, ("events", sent))
        };
        Ok(Sampled {
            scheduling,
            counts: sequence.counts().map(count).into(),
            ..Sampled::default()
        })
    }
}

/// What became of the events of a sequence.
#[derive(Clone, Copy)]
struct Sequence {
    is_lossless: bool,
    sent: u64,
    received: u64,
    /// By the channel's own count.
    discarded: u64,
    /// Numbers that were left out, by the consumer's count.
    lost: u64,
    /// Numbers that came twice, or after a later one.
    repeated: u64,
}

impl Sequence {
    /// Events of which nobody can say where they are, or that were there once too often.
    fn unaccounted(&self) -> u64 {
        let accounted = self.received + self.discarded;
        let lost = if self.is_lossless {
            self.lost + self.discarded
        } else {
            self.lost.saturating_sub(self.discarded)
        };
        self.sent.abs_diff(accounted) + lost + self.repeated
    }

    fn counts(&self) -> [(&'static str, u64); 5] {
        [
            (SENT, self.sent),
            (RECEIVED, self.received),
            (DISCARDED, self.discarded),
            (REPEATED, self.repeated),
            (UNACCOUNTED, self.unaccounted()),
        ]
    }
}

const SAYS: Statements = Statements {
    claims: &[Declaration::count(
        "unaccounted.{policy}",
        Metric::of(P50).in_unit("events"),
        0.0,
    )
    .of(
        "counted=events_unaccounted",
        "{policy} policy: events that were lost or came twice and the policy does not say",
    )],
    conclusions: &[Sentence {
        of: "counted=events_unaccounted",
        says: Words::with(
            "Of {0} events under the {policy} policy, {1} arrived, {2} were discarded, {3} came twice or too late, and {4} are \
             unaccounted for.",
            &[
                Metric::of(P50).at("counted=events_sent").in_unit(""),
                Metric::of(P50).at("counted=events_received").in_unit(""),
                Metric::of(P50).at("counted=events_discarded").in_unit(""),
                Metric::of(P50).at("counted=events_repeated").in_unit(""),
                Metric::of(P50).in_unit(""),
            ],
        ),
    }],
    ..Statements::NONE
};

const POLICY: &str = "policy";
const LOSSLESS: &str = "lossless";
const SENT: &str = "events_sent";
const RECEIVED: &str = "events_received";
const DISCARDED: &str = "events_discarded";
const REPEATED: &str = "events_repeated";
const UNACCOUNTED: &str = "events_unaccounted";
/// So few that a discarding channel discards.
const QUEUE_EVENTS: usize = 16;
/// How long a consumer sleeps over each event that a discarding channel sends it: longer than the channel takes for one.
const WORK: Duration = Duration::from_micros(200);
const PART_EVENTS: u64 = 250_000;
/// A hundred times what it takes.
const PART_TIMEOUT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSLESS_ONE: Sequence = Sequence {
        is_lossless: true,
        sent: 100,
        received: 100,
        discarded: 0,
        lost: 0,
        repeated: 0,
    };
    const DISCARDING_ONE: Sequence = Sequence {
        is_lossless: false,
        received: 70,
        discarded: 30,
        lost: 30,
        ..LOSSLESS_ONE
    };

    #[test]
    fn what_the_policy_does_not_say_is_unaccounted() {
        assert_eq!(LOSSLESS_ONE.unaccounted(), 0);
        assert_eq!(DISCARDING_ONE.unaccounted(), 0);
        // The last ones may be among the discarded, and then no later number tells of them.
        let last = Sequence {
            lost: 25,
            ..DISCARDING_ONE
        };
        assert_eq!(last.unaccounted(), 0);
        let lost = Sequence {
            received: 69,
            lost: 31,
            ..DISCARDING_ONE
        };
        assert_eq!(lost.unaccounted(), 2);
        let repeated = Sequence {
            repeated: 1,
            ..DISCARDING_ONE
        };
        assert_eq!(repeated.unaccounted(), 1);
        let discards = Sequence {
            received: 99,
            discarded: 1,
            ..LOSSLESS_ONE
        };
        assert_eq!(discards.unaccounted(), 1);
    }
}

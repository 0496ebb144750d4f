//! Whether any event is lost or comes twice that the policy does not say: by the numbers of a long sequence of events.

use std::time::Duration;

use rtorb_results::labels;
use rtorb_results::{Derived, Labels};

use super::edges::served;
use super::plan::Plan;
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier, within};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::error::LabError;
use crate::experiment::{Context, Progress};

/// What the channel does with an event for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// The supplier waits.
    Lossless,
    /// The oldest one is discarded, and counted.
    Discarding,
}

impl Policy {
    const ALL: [Self; 2] = [Self::Lossless, Self::Discarding];

    /// The value of the label `policy`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lossless => "lossless",
            Self::Discarding => "discarding",
        }
    }
}

/// What became of the events of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) policy: Policy,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// By the channel's own count.
    pub(super) discarded: u64,
    /// Numbers that were left out, by the consumer's count.
    pub(super) lost: u64,
    /// Numbers that came twice, or after a later one.
    pub(super) repeated: u64,
}

impl Sequence {
    /// Events of which nobody can say where they are, or that were there once too often.
    pub(super) fn unaccounted(&self) -> u64 {
        let accounted = self.received + self.discarded;
        let lost = match self.policy {
            Policy::Lossless => self.lost + self.discarded,
            Policy::Discarding => self.lost.saturating_sub(self.discarded),
        };
        self.sent.abs_diff(accounted) + lost + self.repeated
    }
}

/// The sequences, one for each policy.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    pub(super) all: Vec<Sequence>,
}

impl Sequences {
    pub(super) fn measure(
        &mut self,
        (context, plan): (&Context, &Plan),
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        for policy in Policy::ALL {
            let sequence = run((context, plan), policy, progress)?;
            self.all.push(sequence);
        }
        Ok(())
    }

    pub(super) fn derived(&self) -> Vec<Derived> {
        let derived = self.all.iter().flat_map(|sequence| {
            let labels: Labels = labels([
                ("transport", TRANSPORT.label().into()),
                ("policy", sequence.policy.name().into()),
            ]);
            let counts = [
                ("events_sent", sequence.sent),
                ("events_received", sequence.received),
                ("events_discarded", sequence.discarded),
                ("events_repeated", sequence.repeated),
                ("events_unaccounted", sequence.unaccounted()),
            ];
            counts.map(|(name, count)| Derived {
                name: name.to_owned(),
                labels: labels.clone(),
                unit: "events".to_owned(),
                value: count as f64,
                rounds: vec![count as f64],
            })
        });
        derived.collect()
    }
}

/// Sends the whole sequence in parts, as fast as the channel takes them.
fn run(
    (context, plan): (&Context, &Plan),
    policy: Policy,
    progress: &mut dyn Progress,
) -> Result<Sequence, LabError> {
    let mut served = Served {
        queue_events: QUEUE_EVENTS,
        ..served(context, &[Role::Low])
    };
    if policy == Policy::Discarding {
        served.wait_ms = None;
    }
    let mut channel = Channel::start(context, (TRANSPORT, policy.name()), &served)?;
    let real_time = context.launcher.placement.fifo.is_some();
    let priority = if real_time { Role::Low.priority() } else { 0 };
    let subscribers = Subscribers {
        count: 1,
        source: SOURCE,
        priority,
        events_max: 0,
    };
    let mut consumer =
        Consumers::start(context, (TRANSPORT, policy.name()), &channel, &subscribers)?;
    let mut supplier = Supplier::start(context, &channel, (SOURCE, priority))?;
    if policy == Policy::Discarding {
        consumer.work(WORK)?;
    }
    let mut sent = 0;
    let parts = chunks(plan.in_sequence);
    for part in 1..=parts {
        supplier.begin(&Sending {
            first: sent,
            ..Sending::paced(CHUNK.min(plan.in_sequence - sent), 0)
        })?;
        sent += supplier.finish(CHUNK_TIMEOUT)?.count;
        progress.step(&format!(
            "sequence, {}: part {part} of {parts}",
            policy.name()
        ));
    }
    // What does not come is missed below.
    within(LAST_TIMEOUT, || {
        Ok(consumer.received()?.1 + channel.discarded()? >= sent)
    })?;
    let found = consumer.latencies(0)?;
    Ok(Sequence {
        policy,
        sent,
        received: consumer.received()?.1,
        discarded: channel.discarded()?,
        lost: found.lost,
        repeated: found.repeated + found.malformed,
    })
}

/// In how many parts a sequence is sent.
pub(super) fn chunks(events: u64) -> u64 {
    events.div_ceil(CHUNK)
}

/// Its sockets hold few events, so that they wait in the channel.
const TRANSPORT: Transport = Transport::Unix;
const SOURCE: i32 = 1;
/// So few that a discarding channel discards.
const QUEUE_EVENTS: usize = 16;
/// How long a consumer sleeps over each event that a discarding channel sends it: longer than the channel takes for one.
const WORK: Duration = Duration::from_micros(200);
const CHUNK: u64 = 250_000;
/// A hundred times what it takes.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(120);
const LAST_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_policy_does_not_say_is_unaccounted() {
        let lossless = Sequence {
            policy: Policy::Lossless,
            sent: 100,
            received: 100,
            discarded: 0,
            lost: 0,
            repeated: 0,
        };
        assert_eq!(lossless.unaccounted(), 0);
        let discarding = Sequence {
            policy: Policy::Discarding,
            received: 70,
            discarded: 30,
            lost: 30,
            ..lossless
        };
        assert_eq!(discarding.unaccounted(), 0);
        // The last ones may be among the discarded, and then no later number tells of them.
        assert_eq!(
            Sequence {
                lost: 25,
                ..discarding
            }
            .unaccounted(),
            0
        );
        assert_eq!(
            Sequence {
                received: 69,
                lost: 31,
                ..discarding
            }
            .unaccounted(),
            2
        );
        assert_eq!(
            Sequence {
                repeated: 1,
                ..discarding
            }
            .unaccounted(),
            1
        );
        let discards = Sequence {
            received: 99,
            discarded: 1,
            ..lossless
        };
        assert_eq!(discards.unaccounted(), 1);
    }

    #[test]
    fn a_sequence_is_sent_in_parts() {
        assert_eq!(chunks(10_000_000), 40);
        assert_eq!(chunks(1), 1);
        assert_eq!(chunks(0), 0);
    }
}

//! Whether any event is lost or comes twice that the policy does not say: by the numbers of a long sequence of events.

use std::time::Duration;

use rtorb_results::{Claim, Derived};

use super::served;
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, RECEIPT_TIMEOUT, priority_on, within};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::error::LabError;
use crate::processes::probe::Answer;
use crate::study::{
    Amounts, Answered, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
    Value::Text,
};

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
    factors: &[Factor {
        label: POLICY,
        levels: &[Text(LOSSLESS), Text("discarding")],
    }],
    // Its sockets hold few events, so that they wait in the channel.
    fixed: &[("transport", Text("unix"))],
    findings: |_, conditions| findings(conditions),
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
        let mut channel = Channel::start(context, Transport::Unix, name, &served)?;
        let priority = priority_on(context, Role::Low.priority());
        let subscribers = Subscribers {
            count: 1,
            source: SOURCE,
            priority,
            events_max: 0,
        };
        let mut consumer = channel.consumers(context, name, &subscribers)?;
        let mut supplier = channel.supplier(context, SOURCE, priority)?;
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
        let counts = sequence.counts();
        Ok(Sampled {
            scheduling,
            answer: Some(Answer {
                numbers: counts
                    .map(|(name, count)| (name.to_owned(), count as f64))
                    .into(),
                ..Answer::default()
            }),
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

fn findings(conditions: &Conditions) -> Findings {
    let mut found = Findings::default();
    for Answered { labels, answer, .. } in &conditions.answers {
        let policy = &labels[POLICY];
        let [sent, received, discarded, repeated, unaccounted] =
            COUNTS.map(|name| answer.numbers.get(name).copied().unwrap_or(0.0));
        let count = |name: &str| Derived {
            name: name.to_owned(),
            labels: labels.clone(),
            unit: "events".to_owned(),
            value: answer.numbers[name],
            rounds: vec![answer.numbers[name]],
        };
        found.derived.extend(COUNTS.map(count));
        found.claims.push(Claim::counted(
            format!("unaccounted.{policy}"),
            format!(
                "{policy} policy: of {sent} events, those that were lost or came twice and the policy does not say"
            ),
            unaccounted,
            0.0,
            "events",
        ));
        let kept = match () {
            () if unaccounted > 0.0 => format!(
                "{unaccounted} are unaccounted for: {received} arrived, {discarded} were discarded, {repeated} came twice or too late"
            ),
            () if *policy == LOSSLESS.into() => "all arrived once and in their order".to_owned(),
            () => format!(
                "{received} arrived, once and in their order, and the others are the {discarded} that the channel counts as discarded"
            ),
        };
        let said = format!("Of {sent} events under the {policy} policy, {kept}.");
        found.conclusions.push(said);
    }
    found
}

const POLICY: &str = "policy";
const LOSSLESS: &str = "lossless";
const SENT: &str = "events_sent";
const RECEIVED: &str = "events_received";
const DISCARDED: &str = "events_discarded";
const REPEATED: &str = "events_repeated";
const UNACCOUNTED: &str = "events_unaccounted";
const COUNTS: [&str; 5] = [SENT, RECEIVED, DISCARDED, REPEATED, UNACCOUNTED];
const SOURCE: i32 = 1;
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
    use rtorb_results::{Verdict, labels};

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

    #[test]
    fn an_event_that_nobody_can_account_for_breaks_the_promise() {
        let lost = Sequence {
            received: 99,
            lost: 1,
            ..LOSSLESS_ONE
        };
        let answered = |sequence: Sequence| {
            let policy = if sequence.is_lossless {
                LOSSLESS
            } else {
                "discarding"
            };
            let counts = sequence.counts();
            Answered {
                labels: labels([(POLICY, policy.into())]),
                round: 0,
                answer: Answer {
                    numbers: counts
                        .map(|(name, count)| (name.to_owned(), count as f64))
                        .into(),
                    ..Answer::default()
                },
            }
        };
        let sequences = [LOSSLESS_ONE, DISCARDING_ONE, lost];
        let conditions = Conditions {
            answers: sequences.map(answered).into(),
            ..Conditions::default()
        };
        let found = findings(&conditions);
        let verdicts: Vec<Verdict> = found.claims.iter().map(|claim| claim.verdict).collect();
        assert_eq!(verdicts, [Verdict::Held, Verdict::Held, Verdict::Missed]);
        assert_eq!(found.claims[1].id, "unaccounted.discarding");
        assert_eq!(found.derived.len(), 15);
        let said = &found.conclusions;
        assert!(said[0].contains("Of 100 events under the lossless policy, all arrived once"));
        assert!(said[1].contains("70 arrived") && said[1].contains("the 30 that"));
        assert!(said[2].contains("2 are unaccounted for"), "{said:?}");
        assert!(findings(&Conditions::default()).claims.is_empty());
    }
}

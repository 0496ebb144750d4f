//! `orb/event-channel`: what an event through the real-time event channel takes, beside a call; with one consumer and with many;
//! and what the urgent consumer feels of others that are slow, flooded, killed or hung.

use rtorb_results::{CellValue, Labels, TableView, labels};

use crate::contestants::event_channel::Served;
use crate::contestants::event_channel::system::priority_on;
use crate::contestants::square_wave::system::{self, Role};
use crate::experiment::Context;
use crate::suite::Suite;
pub(super) use fan_out::{Receipt, receipts_ns};

mod counted;
mod edges;
mod fan_out;
mod isolation;
mod sequence;

/// The experiment.
pub const SUITE: Suite = Suite {
    name: "orb/event-channel",
    title: "How long an event takes through the event channel, beside a call; to many consumers; and beside consumers that misbehave",
    reproduces: "P4 Figure 12",
    studies: |effort| {
        if effort.seeds().is_some() {
            return &[&edges::STUDY];
        }
        &[
            &edges::STUDY,
            &fan_out::STUDY,
            &isolation::STUDY,
            &sequence::STUDY,
            &counted::STUDY,
        ]
    },
    notes: |context| {
        let is_emulated = context.effort.seeds().is_some();
        let is_real_time = context.launcher.placement.fifo.is_some();
        let has_agents = context.launcher.agent().is_some();
        let others = [
            (true, ONE_WAY),
            (!has_agents, ON_ONE_CPU),
            (has_agents, EDGES_ON_HOSTS),
            (is_emulated, EDGES_ALONE),
            (!is_emulated && !has_agents, MANY),
            (!is_real_time, NOT_REAL_TIME),
        ];
        let others = others.into_iter().filter(|(is_so, _)| *is_so);
        let mut notes = system::notes(context);
        notes.extend(others.map(|(_, note)| note.to_owned()));
        notes
    },
};

/// A channel with a lane for each role, that loses nothing.
pub(super) fn served(context: &Context, roles: &[Role]) -> Served {
    let roles = if context.launcher.placement.fifo.is_some() {
        roles
    } else {
        &roles[..1]
    };
    let lanes = roles
        .iter()
        .map(|role| priority_on(context, role.priority()));
    Served {
        lanes: lanes.collect(),
        queue_events: QUEUE_EVENTS,
        wait_ms: Some(WAIT_MS),
        counts: false,
    }
}

/// A table of medians of a part, without rows and columns.
fn table(id: &str, title: &str, part: &str) -> TableView {
    TableView {
        id: id.to_owned(),
        title: title.to_owned(),
        of: labels([("part", part.into())]),
        values: vec![CellValue::Median, CellValue::P99],
        ..TableView::default()
    }
}

/// A table of a derived number, without rows and columns.
fn table_of(derived: &str, id: &str, title: &str) -> TableView {
    TableView {
        derived: derived.to_owned(),
        of: Labels::new(),
        ..table(id, title, "")
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// As many as the channel has by default.
const QUEUE_EVENTS: usize = 256;
/// Longer than any of these consumers is away, shorter than a send may take.
const WAIT_MS: u64 = 4_000;
const ONE_WAY: &str = "Nobody answers an event: its series have no `round_trip`. The channel sends an event on as it comes, in the thread \
                       that received it, where consumer and supplier are equally urgent.";
const ON_ONE_CPU: &str = "On this one CPU the channel sends an event on once the supplier, which waits for no answer, sleeps until its next \
                          edge: `request` counts that, and a call has none of it.";
const EDGES_ON_HOSTS: &str =
    "With agents edges are measured alone: the other studies measure this host, and need no agent.";
const MANY: &str = "Consumers share processes: those that a step of the sweep adds are in one, those beside the urgent one in another; \
                    each has a connection of its own. All processes are on one CPU.";
const EDGES_ALONE: &str = "In an emulated machine edges are measured alone: many consumers and those that misbehave would take its emulator \
                           too long.";
const NOT_REAL_TIME: &str =
    "Without SCHED_FIFO no event has a priority: `role` says what was asked for.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Effort, Experiment};

    #[test]
    fn a_quick_run_is_short_and_an_emulated_one_has_edges_alone() {
        let number = |effort, name: &str| SUITE.parameters(effort)[name].number();
        let paced = |effort| number(effort, "paced_seconds").expect("a number");
        assert!((5..=20).contains(&paced(Effort::Quick)));
        let emulated = Effort::Emulated {
            seeds: 4,
            full: false,
        };
        assert!(paced(emulated) <= 4);
        assert!(!SUITE.parameters(emulated).contains_key("flood"));
        assert_eq!(number(Effort::Full, "events_in_sequence"), Some(10_000_000));
        let consumers = &SUITE.parameters(Effort::Full)["consumers"];
        assert!(consumers.to_string().ends_with("500 1000"));
        assert!(SUITE.varies_load());
    }
}

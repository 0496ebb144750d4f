//! `orb/events`: what an event through the real-time event channel costs; when many consumers have it, and how many events a second
//! they take; and what the urgent consumer feels of others that are slow, flooded, killed or hung.
//!
//! `orb/edge` has an event beside a call.

use crate::contestants::event_channel::Served;
use crate::contestants::event_channel::system::priority_on;
use crate::contestants::square_wave::system::Role;
use crate::experiments::prelude::*;
use crate::suite::Suite;

mod cost;
mod counted;
mod fan_out;
mod isolation;
mod route;
mod sequence;

/// The experiment.
pub const SUITE: Suite = Suite {
    name: "orb/events",
    title: "What an event through the event channel costs, with one consumer and with many; and beside consumers that misbehave",
    reproduces: "P3 section 3 (the cost of each service of a platform), for the channel of P4",
    // Many consumers and those that misbehave would take an emulator too long.
    studies: |effort| {
        if effort.seeds().is_some() {
            return &[&cost::STUDY];
        }
        &[
            &fan_out::STUDY,
            &cost::STUDY,
            &isolation::STUDY,
            &sequence::STUDY,
            &counted::STUDY,
        ]
    },
    notes: |context| {
        let is_emulated = context.effort.seeds().is_some();
        let many = (!is_emulated).then(|| MANY.to_owned());
        many.into_iter()
            .chain(context.without_fifo(NOT_REAL_TIME))
            .collect()
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
fn table_of_part(id: &str, title: &str, part: &str) -> TableView {
    TableView::new(id, title)
        .of(labels([("part", part.into())]))
        .values([CellValue::Median, CellValue::P99])
}

/// A table of a derived number, without rows and columns.
fn table_of(derived: &str, id: &str, title: &str) -> TableView {
    table_of_part(id, title, "")
        .derived(derived)
        .of(Labels::new())
}

/// As many as the channel has by default.
const QUEUE_EVENTS: usize = 256;
/// Longer than any of these consumers is away, shorter than a send may take.
const WAIT_MS: u64 = 4_000;
const MANY: &str = "Consumers share processes: those that a step of the sweep adds are in one, those beside the urgent one in another; \
                    each has a connection of its own. All processes are on one CPU.";
const NOT_REAL_TIME: &str =
    "Without SCHED_FIFO no event has a priority: `role` says what was asked for.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Effort, Experiment};

    #[test]
    fn a_quick_run_is_short_and_an_emulated_one_has_the_cost_alone() {
        let number = |effort, name: &str| SUITE.parameters(effort)[name].number();
        assert!((5..=20).contains(&number(Effort::Quick, "paced_seconds").expect("a number")));
        let emulated = Effort::Emulated {
            seeds: 4,
            full: false,
        };
        assert_eq!(number(emulated, "events_per_round"), Some(50));
        assert!(!SUITE.parameters(emulated).contains_key("flood"));
        assert_eq!(number(Effort::Full, "events_in_sequence"), Some(10_000_000));
        let consumers = &SUITE.parameters(Effort::Full)["consumers"];
        assert!(consumers.to_string().ends_with("500 1000"));
        assert!(!SUITE.services().is_empty());
    }
}

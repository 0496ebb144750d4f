//! How much is measured.

use crate::contestants::Transport;
use crate::experiment::Effort;
use crate::experiments::beside::Beside;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) rounds: usize,
    /// Of each path in each round.
    pub(super) edges: usize,
    /// What is run beside the edges, one after the other.
    pub(super) loads: &'static [Beside],
    /// The numbers of consumers, each larger than the one before.
    pub(super) fan_out: &'static [usize],
    /// Events in a round, for each number of consumers: of these and of [`DELIVERIES_MIN`], what takes longer.
    pub(super) deliveries: usize,
    /// Beside the urgent one.
    pub(super) low_consumers: usize,
    /// Events to the urgent one, in each round beside each kind of others.
    pub(super) isolated_events: u64,
    /// How often each kind of others is beside it.
    pub(super) isolated_rounds: usize,
    pub(super) isolated_over: &'static [Transport],
    /// Events whose numbers are checked, with each policy.
    pub(super) in_sequence: u64,
    /// Events over which is counted what one costs, in each round.
    pub(super) counted_events: u64,
}

impl Plan {
    pub(super) fn of(effort: Effort) -> Self {
        match effort {
            Effort::Glance => Self {
                rounds: 1,
                edges: 20,
                loads: &Beside::WITHOUT_AND_WITH,
                fan_out: &[1, 4],
                deliveries: 20,
                low_consumers: 4,
                isolated_events: 20,
                isolated_rounds: 1,
                isolated_over: &[Transport::Unix],
                in_sequence: 2_000,
                counted_events: 50,
            },
            Effort::Emulated { seeds } => Self {
                rounds: usize::from(seeds),
                edges: 125,
                loads: &[Beside::LoadOfMachine],
                fan_out: &[],
                deliveries: 0,
                low_consumers: 0,
                isolated_events: 0,
                isolated_rounds: 0,
                isolated_over: &[],
                in_sequence: 0,
                counted_events: 0,
            },
            Effort::Quick => Self {
                rounds: 3,
                edges: 200,
                loads: &Beside::WITHOUT_AND_WITH,
                fan_out: &[1, 10, 100],
                deliveries: 2_000,
                low_consumers: 100,
                isolated_events: 220,
                isolated_rounds: 9,
                isolated_over: &[Transport::Unix],
                in_sequence: 50_000,
                counted_events: 500,
            },
            Effort::Full => Self {
                rounds: 10,
                edges: 1_000,
                loads: &Beside::WITHOUT_AND_WITH,
                fan_out: &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
                deliveries: 20_000,
                low_consumers: 100,
                isolated_events: 1_000,
                isolated_rounds: 20,
                isolated_over: &[Transport::Tcp, Transport::Unix],
                in_sequence: 10_000_000,
                counted_events: 2_000,
            },
        }
    }

    /// Events of a round of the fan-out.
    pub(super) fn fan_out_events(&self, consumers: usize) -> u64 {
        let events = (self.deliveries / consumers.max(1)).clamp(EVENTS_MIN, EVENTS_MAX);
        events as u64
    }

    /// The number of steps that progress is told of.
    pub(super) fn steps(&self) -> usize {
        let edges = self.rounds * self.loads.len() * 4;
        match self.loads {
            [Beside::LoadOfMachine] => edges,
            _ => {
                let fan_out = 2 * self.fan_out.len();
                let isolation = self.isolations();
                let sequences = 2 * super::sequence::chunks(self.in_sequence) as usize;
                edges + fan_out + isolation + sequences + super::counted::CONSUMERS.len()
            }
        }
    }

    /// The time that is spent at a given rate.
    pub(super) fn paced_ns(&self) -> u64 {
        let edges = (self.rounds * self.loads.len() * 4 * self.edges) as u64 * PERIOD_NS;
        let fan_out: u64 = self
            .fan_out
            .iter()
            .map(|consumers| 2 * self.fan_out_events(*consumers) * fan_out_period_ns(*consumers))
            .sum();
        let isolation = self.isolations() as u64 * self.isolated_events * ISOLATED_PERIOD_NS;
        edges + fan_out * self.rounds as u64 + isolation
    }

    /// How often the urgent consumer is measured beside some kind of others.
    fn isolations(&self) -> usize {
        let others = super::isolation::Others::ALL.len();
        self.isolated_over.len() * self.isolated_rounds * others
    }
}

/// From event to event of the fan-out: time enough for all consumers to have one before the next.
pub(super) fn fan_out_period_ns(consumers: usize) -> u64 {
    PERIOD_NS.max(consumers as u64 * PERIOD_NS_A_CONSUMER)
}

/// 1,000 edges a second, a square wave of 500 Hz.
pub(super) const PERIOD_NS: u64 = 1_000_000;
/// Twice as often, for a percentile needs many.
pub(super) const ISOLATED_PERIOD_NS: u64 = 500_000;
/// Several times what it takes to give one consumer an event.
const PERIOD_NS_A_CONSUMER: u64 = 50_000;
const EVENTS_MIN: usize = 10;
const EVENTS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_consumers_have_more_events_and_many_more_time() {
        let plan = Plan::of(Effort::Quick);
        assert_eq!(plan.fan_out_events(1), 500);
        assert_eq!(plan.fan_out_events(100), 20);
        assert_eq!(plan.fan_out_events(1_000), 10);
        assert_eq!(fan_out_period_ns(1), PERIOD_NS);
        assert_eq!(fan_out_period_ns(1_000), 50_000_000);
    }

    #[test]
    fn a_full_run_checks_ten_million_numbers_and_has_all_numbers_of_consumers() {
        let plan = Plan::of(Effort::Full);
        assert_eq!(plan.in_sequence, 10_000_000);
        assert_eq!(
            (plan.fan_out.first(), plan.fan_out.last()),
            (Some(&1), Some(&1_000))
        );
        assert!(plan.fan_out.is_sorted());
    }
}

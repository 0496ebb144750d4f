//! What a burst to a lane of one thread meets, without and with buffering: the requests that are served or refused, and when.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::{Claim, Derived, labels};

use super::findings::{samples, us};
use super::{IN_PROGRESS, OFF, ON, POLICY, REFUSED, SERVED, SETTING};
use crate::contestants::rt_policies::{BUFFERED_MAX, BURST, BURST_WAIT_US, RtPolicy};
use crate::study::Conditions;

/// The requests of the bursts.
pub(super) struct Burst<'a> {
    off: Level<'a>,
    on: Level<'a>,
}

impl<'a> Burst<'a> {
    pub(super) fn of(cells: &'a Cells, conditions: &Conditions) -> Self {
        let level = |setting| Level::of(cells, conditions, setting);
        Self {
            off: level(OFF),
            on: level(ON),
        }
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        let room = BUFFERED_MAX + 1;
        let unbuffered = Claim::at_most(
            "buffering.refused-without",
            format!("without buffering: the refused requests of a burst of {BURST}"),
            &self.off.refused_a_burst,
            0.0,
            "requests",
        );
        let bound = Claim::at_most(
            "buffering.served-beyond-bound",
            format!(
                "with buffering: the served requests of a burst of {BURST}, beyond the {room} for which there is room"
            ),
            &self
                .on
                .served_a_burst
                .map(|served| served - f64::from(room)),
            BEYOND_BOUND_MAX,
            "requests",
        );
        let refusals = self.on.refused.map(|refused| {
            let wait_ns = f64::from(BURST_WAIT_US) * 1e3;
            refused.rounds(|round| round.p50).map(|ns| ns / wait_ns)
        });
        let refusal = Claim::at_most(
            "buffering.refusal-to-service-p50",
            "with buffering: the median time until a client knows that its request is refused, to the time in which one is served",
            &refusals.unwrap_or_default(),
            REFUSAL_TO_SERVICE_MAX,
            "ratio",
        );
        [unbuffered, bound, refusal].into_iter().flatten().collect()
    }

    pub(super) fn derived(&self) -> Vec<Derived> {
        let of = |setting: &str, level: &Level<'_>| {
            [
                ("served_a_burst", &level.served_a_burst),
                ("refused_a_burst", &level.refused_a_burst),
            ]
            .map(|(name, rounds)| {
                let policy = RtPolicy::Buffering.word();
                let labels = labels([(POLICY, policy.into()), (SETTING, setting.into())]);
                Derived::of_rounds(name, labels, "requests", rounds)
            })
        };
        let all = [of(OFF, &self.off), of(ON, &self.on)];
        all.into_iter().flatten().flatten().collect()
    }

    pub(super) fn words(&self) -> Option<String> {
        Some(format!(
            "Of a burst of {BURST} requests to a lane of one thread, {:.1} are served without buffering, half of them within {:.0} us and the \
             last after {:.0} us; with buffering of {BUFFERED_MAX}, {:.1} are served within {:.0} us, and {:.1} are refused after {:.0} us \
             (median).",
            self.off.served_a_burst.median()?,
            us(self.off.served)?,
            self.off.longest_us()?,
            self.on.served_a_burst.median()?,
            self.on.longest_us()?,
            self.on.refused_a_burst.median()?,
            us(self.on.refused)?
        ))
    }
}

/// The requests with buffering, or without.
struct Level<'a> {
    served: Option<&'a Samples>,
    refused: Option<&'a Samples>,
    served_a_burst: ByRound,
    refused_a_burst: ByRound,
}

impl<'a> Level<'a> {
    fn of(cells: &'a Cells, conditions: &Conditions, setting: &str) -> Self {
        let samples = |call| samples(cells, RtPolicy::Buffering, [setting, IN_PROGRESS, call]);
        let a_burst = |name: &str| {
            let kept = conditions.answers.iter().filter(|kept| {
                let is = |label: &str, value: &str| kept.labels.get(label) == Some(&value.into());
                is(POLICY, RtPolicy::Buffering.word()) && is(SETTING, setting)
            });
            kept.filter_map(|kept| {
                let number = |name: &str| kept.answer.numbers.get(name);
                // Each client of the burst makes a request.
                let bursts = (number(SERVED)? + number(REFUSED)?) / BURST as f64;
                Some((kept.round, number(name)? / bursts.max(1.0)))
            })
            .collect()
        };
        Self {
            served: samples(SERVED),
            refused: samples(REFUSED),
            served_a_burst: a_burst(SERVED),
            refused_a_burst: a_burst(REFUSED),
        }
    }

    /// The longest of a round, in the median of the rounds.
    fn longest_us(&self) -> Option<f64> {
        let longest_ns = self.served?.rounds(|round| round.max);
        Some(longest_ns.median()? / 1e3)
    }
}

/// If a host delays some clients, the thread has finished a request before theirs come.
const BEYOND_BOUND_MAX: f64 = 0.5;
/// The thread serves one request after the other; a refusal does not wait for it.
const REFUSAL_TO_SERVICE_MAX: f64 = 0.5;

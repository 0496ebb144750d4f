//! What each policy does for urgent calls, in numbers and in words.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::{Claim, Derived, Highlight, Published, labels};

use super::burst::Burst;
use super::{CALL, IN_PROGRESS, NONE, OFF, ON, OTHER_CALLS, POLICY, SETTING, URGENT};
use crate::contestants::rt_policies::RtPolicy;
use crate::experiments::percentile::{P50, P99, Percentile};
use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, conditions: &Conditions) -> Findings {
    let mut found = Findings::default();
    for policy in RtPolicy::ALL {
        let urgent = UrgentCalls::of(cells, policy);
        found.claims.extend(urgent.claims());
        found.derived.extend(urgent.derived());
        found.highlights.extend(urgent.highlight());
        let mut words: Vec<String> = urgent.words().into_iter().collect();
        if policy == RtPolicy::Buffering {
            let burst = Burst::of(cells, conditions);
            found.claims.extend(burst.claims());
            found.derived.extend(burst.derived());
            words.splice(0..0, burst.words());
        }
        if !words.is_empty() {
            found.published.push(published(policy, words.join(" ")));
        }
        found.conclusions.extend(words);
    }
    found
}

/// The urgent calls of a policy.
struct UrgentCalls<'a> {
    policy: RtPolicy,
    off: Level<'a>,
    on: Level<'a>,
}

impl<'a> UrgentCalls<'a> {
    fn of(cells: &'a Cells, policy: RtPolicy) -> Self {
        let samples = |setting, beside| samples(cells, policy, [setting, beside, URGENT]);
        let level = |setting| Level {
            alone: samples(setting, NONE),
            beside: samples(setting, IN_PROGRESS),
        };
        Self {
            policy,
            off: level(OFF),
            on: level(ON),
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let (policy, phrases) = (self.policy.word(), Phrases::of(self.policy));
        let Phrases { beside, off, on } = phrases;
        let effect = Claim::at_most(
            format!("{policy}.on-to-off-p50"),
            format!("an urgent call {beside}: the median {on}, to that {off}"),
            &self.on_to_off(IN_PROGRESS, &P50),
            ON_TO_OFF_MAX,
            "ratio",
        );
        // Lanes share nothing: a burst in another lane delays an urgent call neither with buffering nor without.
        let effect = effect.filter(|_| self.policy != RtPolicy::Buffering);
        let rest = Claim::at_most(
            format!("{policy}.beside-to-alone-p50"),
            format!("{on}: the median of an urgent call {beside}, to that alone"),
            &self.on.beside_to_alone(&P50),
            BESIDE_TO_ALONE_MAX,
            "ratio",
        );
        [effect, rest].into_iter().flatten().collect()
    }

    fn derived(&self) -> Vec<Derived> {
        let ratios = |name: &str, of: &Percentile, (label, value): (&str, &str), ratios| {
            let labels = labels([(POLICY, self.policy.word().into()), (label, value.into())]);
            Derived::of_rounds(&format!("{name}_{}", of.name), labels, "ratio", &ratios)
        };
        let mut all = Vec::new();
        for of in [&P50, &P99] {
            for (setting, level) in [(OFF, &self.off), (ON, &self.on)] {
                let found = level.beside_to_alone(of);
                all.extend(ratios("beside_to_alone", of, (SETTING, setting), found));
            }
            for beside in [NONE, IN_PROGRESS] {
                let found = self.on_to_off(beside, of);
                all.extend(ratios("on_to_off", of, (OTHER_CALLS, beside), found));
            }
        }
        all
    }

    fn highlight(&self) -> Option<Highlight> {
        let Phrases { beside, off, on } = Phrases::of(self.policy);
        Some(Highlight {
            what: format!("an urgent call {beside}, {on}"),
            value: us(self.on.beside)?,
            unit: "us".to_owned(),
            beside: format!(
                "{off} {:.1} us; alone {:.1} us",
                us(self.off.beside)?,
                us(self.on.alone)?
            ),
        })
    }

    fn words(&self) -> Option<String> {
        let Phrases { beside, off, on } = Phrases::of(self.policy);
        Some(format!(
            "An urgent call {beside} takes {:.1} us {off} and {:.1} us {on} (medians); alone it takes {:.1} and {:.1} us.",
            us(self.off.beside)?,
            us(self.on.beside)?,
            us(self.off.alone)?,
            us(self.on.alone)?
        ))
    }

    /// How many times as long a call takes with the policy as without.
    fn on_to_off(&self, beside: &str, of: &Percentile) -> ByRound {
        let rounds = |level: &Level<'_>| {
            let is_alone = beside == NONE;
            of.rounds(if is_alone { level.alone } else { level.beside })
        };
        rounds(&self.on).divided_by(&rounds(&self.off))
    }
}

/// The urgent calls with a policy in force, or without.
struct Level<'a> {
    alone: Option<&'a Samples>,
    beside: Option<&'a Samples>,
}

impl Level<'_> {
    /// How many times as long a call takes beside others.
    fn beside_to_alone(&self, of: &Percentile) -> ByRound {
        of.rounds(self.beside).divided_by(&of.rounds(self.alone))
    }
}

/// The cell of a policy that has this setting, these calls beside, and these calls themselves.
pub(super) fn samples<'a>(
    cells: &'a Cells,
    policy: RtPolicy,
    [setting, beside, call]: [&str; 3],
) -> Option<&'a Samples> {
    let wanted = [
        (POLICY, policy.word().into()),
        (SETTING, setting.into()),
        (OTHER_CALLS, beside.into()),
        (CALL, call.into()),
    ];
    let found = cells.with(&wanted).next();
    found.map(|(_, samples)| samples)
}

/// The median over rounds, in microseconds.
pub(super) fn us(samples: Option<&Samples>) -> Option<f64> {
    Some(samples?.median_ns()? / 1e3)
}

/// A policy in words that follow "an urgent call".
struct Phrases {
    beside: &'static str,
    off: &'static str,
    on: &'static str,
}

impl Phrases {
    const fn of(policy: RtPolicy) -> Self {
        match policy {
            RtPolicy::Borrowing => Self {
                beside: "while its lane's only thread is busy",
                off: "without borrowing",
                on: "with borrowing",
            },
            RtPolicy::Buffering => Self {
                beside: "beside a burst to a less urgent lane",
                off: "without buffering",
                on: "with buffering",
            },
            RtPolicy::Bands => Self {
                beside: "beside calls of low priority",
                off: "over one connection for all",
                on: "with a connection for each band",
            },
            RtPolicy::NestedPriority => Self {
                beside: "through two servers beside such calls of low priority",
                off: "with SERVER_DECLARED",
                on: "with CLIENT_PROPAGATED",
            },
        }
    }
}

fn published(policy: RtPolicy, ours: String) -> Published {
    let what = match policy {
        RtPolicy::Borrowing => "thread borrowing between the lanes of a pool",
        RtPolicy::Buffering => "request buffering in the lanes of a pool",
        RtPolicy::Bands => "priority-banded connections",
        RtPolicy::NestedPriority => "priorities of nested calls",
    };
    Published {
        source: "P0 section 4, future work".to_owned(),
        what: what.to_owned(),
        published: "to be evaluated".to_owned(),
        ours,
    }
}

/// What a call waits for without the policy is several times a call; half leaves room for a slow host.
const ON_TO_OFF_MAX: f64 = 0.5;
/// A policy costs a switch to a thread that helps or reads, and never the wait for another call.
const BESIDE_TO_ALONE_MAX: f64 = 2.0;

#[cfg(test)]
mod tests;

//! The text of a report and its sums by layer: the same for a terminal, a page, and a program that refuses to run a system.

use core::fmt;

use super::check::remedies;
use super::report::{
    BehaviourBound, CauseEffectBound, ChainBound, CheckReport, LatencyBound, Layer, Share, Standing,
};
use crate::admission::Refusal;
use crate::times::text_of_ns;

impl Layer {
    /// All layers, from the lowest up.
    pub const ALL: [Self; 4] = [
        Self::Hardware,
        Self::OperatingSystem,
        Self::Orb,
        Self::Application,
    ];
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hardware => "hardware",
            Self::OperatingSystem => "operating system",
            Self::Orb => "ORB",
            Self::Application => "application",
        })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::NotProven => "not proven",
            Self::Misses => "misses",
        })
    }
}

impl CheckReport {
    /// Returns the report in a sentence or two, the verdict first.
    #[must_use]
    pub fn verdict(&self) -> String {
        match self.standing {
            Standing::Holds => format!(
                "All deadlines of {} hold: {}.{}",
                self.system,
                self.size(),
                self.least_slack()
            ),
            Standing::Misses => self.misses(),
            Standing::NotProven => format!(
                "It is not proven that all deadlines of {} hold: {} of {} are undecided.",
                self.system,
                self.standing_so(Standing::NotProven),
                self.size()
            ),
        }
    }

    /// Returns why the system is refused; `None` if every deadline is proven to hold.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        let first = self.first_miss.as_deref();
        let is_first = |end: &End<'_>| match first {
            Some(name) => end.name == name && end.standing == Standing::Misses,
            None => end.standing != Standing::Holds,
        };
        let end = self.ends().find(is_first)?;
        let (limit, deadline) = (end.what.limit(), text_of_ns(end.deadline_ns));
        let (what, may) = (end.what, end.what.may());
        let reason = match (end.standing, end.bound_ns) {
            (Standing::Misses, Some(bound_ns)) => format!(
                "misses its {limit} of {deadline}: its {what} may {may} {}",
                rounded_up(bound_ns)
            ),
            (Standing::Misses, None) => {
                format!("misses its {limit} of {deadline}: its {what} has no bound")
            }
            _ => format!("is not proven to meet its {limit} of {deadline}"),
        };
        Some(Refusal {
            operation: end.name.to_owned(),
            reason,
            remedies: remedies(end.explanation),
        })
    }

    /// Returns the bound and the deadline, in ns, of a chain or behaviour.
    #[must_use]
    pub fn bound_and_deadline(&self, name: &str) -> Option<(Option<u64>, u64)> {
        let mut all = self.ends();
        let found = all.find(|end| end.name == name)?;
        Some((found.bound_ns, found.deadline_ns))
    }

    fn misses(&self) -> String {
        let count = self.standing_so(Standing::Misses);
        let others = match count.saturating_sub(1) {
            0 => String::new(),
            1 => " 1 other also misses its deadline.".to_owned(),
            more => format!(" {more} others also miss their deadlines."),
        };
        let first = self.first_miss.as_deref();
        let is_first = |end: &End<'_>| first == Some(end.name) && end.standing == Standing::Misses;
        let Some(end) = self.ends().find(is_first) else {
            return format!("{} will miss deadlines.", self.system);
        };
        let (name, what, limit) = (end.name, end.what, end.what.limit());
        let deadline = text_of_ns(end.deadline_ns);
        let first = match end.what {
            Latency::Response => format!(
                "{} will miss deadlines. The first is that of {name}",
                self.system
            ),
            _ => format!(
                "{} will exceed limits of its data. The first is that of {name}",
                self.system
            ),
        };
        match end.bound_ns {
            Some(bound_ns) => format!(
                "{first}: its {what} may {} {}, which is {} more than its {limit} of {deadline}.{others}",
                what.may(),
                rounded_up(bound_ns),
                rounded_up(bound_ns.saturating_sub(end.deadline_ns)),
            ),
            None => {
                format!("{first}: its {what} has no bound, and its {limit} is {deadline}.{others}")
            }
        }
    }

    fn size(&self) -> String {
        let parts = [
            (self.behaviours.len(), "behaviour"),
            (self.chains.len(), "chain"),
            (self.cause_effect_chains.len(), "cause-effect chain"),
        ];
        let filled = parts.into_iter().filter(|(count, _)| *count > 0);
        let mut texts: Vec<String> = filled
            .map(|(count, of)| format!("{count} {of}{}", if count == 1 { "" } else { "s" }))
            .collect();
        let last = texts.pop().unwrap_or_default();
        if texts.is_empty() {
            last
        } else {
            format!("{} and {last}", texts.join(", "))
        }
    }

    /// The end with the least slack, as a share of its deadline.
    fn least_slack(&self) -> String {
        let share = |end: &End<'_>| {
            let left = u128::try_from(end.slack_ns?).ok()?;
            Some(left * 1_000_000 / u128::from(end.deadline_ns.max(1)))
        };
        let nearest = self
            .ends()
            .filter_map(|end| Some((share(&end)?, end)))
            .min_by_key(|(share, _)| *share);
        nearest.map_or_else(String::new, |(_, end)| {
            let left = end.slack_ns.unwrap_or(0).unsigned_abs();
            format!(
                " {} has the least slack: {} of {}.",
                end.named(),
                rounded_down(left),
                text_of_ns(end.deadline_ns)
            )
        })
    }

    fn standing_so(&self, standing: Standing) -> usize {
        self.ends().filter(|end| end.standing == standing).count()
    }

    fn ends(&self) -> impl Iterator<Item = End<'_>> {
        let behaviours = self.behaviours.iter().map(|one| End {
            name: &one.behaviour,
            what: Latency::Response,
            deadline_ns: one.deadline_ns,
            bound_ns: one.bound_ns,
            slack_ns: one.slack_ns,
            standing: one.standing,
            explanation: &one.explanation,
        });
        let chains = self.chains.iter().map(|one| End {
            name: &one.chain,
            what: Latency::Response,
            deadline_ns: one.deadline_ns,
            bound_ns: one.bound_ns,
            slack_ns: one.slack_ns,
            standing: one.standing,
            explanation: &one.explanation,
        });
        let limited = self.cause_effect_chains.iter();
        behaviours
            .chain(chains)
            .chain(limited.flat_map(CauseEffectBound::ends))
    }
}

impl CauseEffectBound {
    /// Returns the data age and the reaction time, as far as they have limits.
    fn ends(&self) -> impl Iterator<Item = End<'_>> {
        let data_age = self.data_age.end(&self.chain, Latency::DataAge);
        let reaction_time = &self.reaction_time;
        let reaction_time = reaction_time.end(&self.chain, Latency::ReactionTime);
        data_age.into_iter().chain(reaction_time)
    }
}

impl LatencyBound {
    fn end<'a>(&'a self, name: &'a str, what: Latency) -> Option<End<'a>> {
        Some(End {
            name,
            what,
            deadline_ns: self.limit_ns?,
            bound_ns: self.bound_ns,
            slack_ns: self.slack_ns,
            standing: self.standing,
            explanation: &self.explanation,
        })
    }
}

impl BehaviourBound {
    /// Returns the part of the bound that each layer causes, from the lowest layer up, in ns.
    #[must_use]
    pub fn layers_ns(&self) -> [(Layer, i64); 4] {
        by_layer(&self.shares)
    }
}

impl ChainBound {
    /// Returns the part of the bound that each layer causes, from the lowest layer up, in ns.
    #[must_use]
    pub fn layers_ns(&self) -> [(Layer, i64); 4] {
        by_layer(&self.shares)
    }
}

/// What is bounded.
#[derive(Clone, Copy)]
enum Latency {
    Response,
    DataAge,
    ReactionTime,
}

impl Latency {
    /// The word for what it must not exceed.
    const fn limit(self) -> &'static str {
        match self {
            Self::Response => "deadline",
            Self::DataAge | Self::ReactionTime => "limit",
        }
    }

    /// The verb between it and a time.
    const fn may(self) -> &'static str {
        match self {
            Self::Response => "take",
            Self::DataAge | Self::ReactionTime => "be",
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Response => "response",
            Self::DataAge => "data age",
            Self::ReactionTime => "reaction time",
        })
    }
}

/// A behaviour or chain, with its deadline or limit.
struct End<'a> {
    name: &'a str,
    what: Latency,
    deadline_ns: u64,
    bound_ns: Option<u64>,
    slack_ns: Option<i64>,
    standing: Standing,
    explanation: &'a str,
}

impl End<'_> {
    fn named(&self) -> String {
        match self.what {
            Latency::Response => self.name.to_owned(),
            what => format!("The {what} of {}", self.name),
        }
    }
}

/// Formats three or four digits of a time, rounded up: `1.24ms` for 1,234,567 ns. For bounds.
#[must_use]
pub fn rounded_up(ns: u64) -> String {
    let step = step_of(ns);
    text_of_ns(ns.div_ceil(step).saturating_mul(step))
}

/// Formats three or four digits of a time, rounded down. For slack.
#[must_use]
pub fn rounded_down(ns: u64) -> String {
    let step = step_of(ns);
    text_of_ns(ns / step * step)
}

/// Formats four digits of a measured time, rounded to the nearest.
#[must_use]
pub fn rounded(ns: f64) -> String {
    // A negative time becomes 0, and a time that is too long the longest one.
    let ns = ns.round() as u64;
    let step = step_of(ns);
    text_of_ns((ns.saturating_add(step / 2) / step).saturating_mul(step))
}

/// Returns the value of a time's fourth digit, as a power of ten.
fn step_of(ns: u64) -> u64 {
    10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(DIGITS - 1))
}

fn by_layer(shares: &[Share]) -> [(Layer, i64); 4] {
    Layer::ALL.map(|layer| {
        let own = shares.iter().filter(|share| share.layer == layer);
        (layer, own.map(|share| share.ns).sum())
    })
}

/// The number of digits that a reader compares.
const DIGITS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_up_and_slack_is_rounded_down() {
        for (ns, up, down) in [
            (0, "0ns", "0ns"),
            (999, "999ns", "999ns"),
            (1_234_567, "1.235ms", "1.234ms"),
            (99_999_999, "100ms", "99.99ms"),
            (50_000_000, "50ms", "50ms"),
            (12_000_000_001, "12.01s", "12s"),
        ] {
            assert_eq!(
                (rounded_up(ns).as_str(), rounded_down(ns).as_str()),
                (up, down)
            );
        }
        for (ns, text) in [
            (0.4, "0ns"),
            (-3.0, "0ns"),
            (124_387.0, "124.4us"),
            (999_950.0, "1ms"),
        ] {
            assert_eq!(rounded(ns), text);
        }
        assert!(!rounded(f64::MAX).is_empty());
        assert!(!rounded_up(u64::MAX).is_empty());
    }
}

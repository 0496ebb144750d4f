//! Costs, and curves of costs.

use std::collections::BTreeMap;

use super::super::verdict::rounded_up;
use super::Statistic;
use super::profile::{Service, whole_ns};

/// A cost and its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The cost, in ns.
    pub ns: u64,
    /// The number of samples of its statistic; of several measurements, the smallest number. 0 if nothing was measured.
    pub samples: u64,
    /// The source, as text.
    pub source: String,
    /// The assumption, and the command that would measure the cost; `None` if it was measured.
    pub assumption: Option<String>,
}

/// A cost as a function of a number, linear between its points.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    /// The number and the cost of each point; the costs never decrease.
    points: Vec<(u64, u64)>,
    /// The source of all points; its `ns` is unused.
    known: Cost,
    /// The quantity that the number counts, as text.
    of: &'static str,
}

impl Cost {
    /// Creates the cost of one service.
    pub(super) fn of(service: &Service, statistic: Statistic) -> Self {
        Self {
            ns: service.ns(statistic),
            samples: service.count,
            source: format!("{} of {service}", statistic.name()),
            assumption: None,
        }
    }

    /// Returns the largest cost of these services.
    pub(super) fn worst<'a>(
        services: impl Iterator<Item = &'a Service>,
        statistic: Statistic,
    ) -> Option<Self> {
        let costs = services.map(|service| Self::of(service, statistic));
        costs.max_by_key(|cost| cost.ns)
    }

    /// Returns this cost as a substitute for one that was not measured.
    pub(super) fn instead_of(self, what: &str, measured_by: &str) -> Self {
        let taken = match self.samples {
            0 => "its cost is taken as 0".to_owned(),
            _ => format!("{} is used instead ({})", rounded_up(self.ns), self.source),
        };
        Self {
            assumption: Some(format!(
                "{what} was not measured: {taken}; `{measured_by}` measures it"
            )),
            ..self
        }
    }

    /// Returns no cost, if nothing similar was measured.
    pub(super) fn unknown(what: &str, measured_by: &str) -> Self {
        let nothing = Self {
            source: "not measured".to_owned(),
            ..Self::default()
        };
        nothing.instead_of(what, measured_by)
    }
}

impl Curve {
    /// Through the costs of these services at these numbers. Of several at one number the largest counts. A cost that falls where the
    /// number grows is noise: what was seen with less may happen with more.
    pub(super) fn through<'a>(
        services: impl Iterator<Item = (u64, u64, &'a Service)>,
        statistic: Statistic,
        of: &'static str,
    ) -> Option<Self> {
        let mut worst: BTreeMap<u64, u64> = BTreeMap::new();
        let mut known: Option<Cost> = None;
        for (number, ns, service) in services {
            let at = worst.entry(number).or_default();
            *at = ns.max(*at);
            let samples = known.as_ref().map_or(u64::MAX, |known| known.samples);
            known = Some(Cost {
                ns: 0,
                samples: samples.min(service.count),
                source: format!(
                    "{} of {} {}, by {of}",
                    statistic.name(),
                    service.component,
                    service.service
                ),
                assumption: None,
            });
        }
        let mut reached = 0;
        let points = worst.into_iter().map(|(number, ns)| {
            reached = reached.max(ns);
            (number, reached)
        });
        Some(Self {
            points: points.collect(),
            known: known?,
            of,
        })
    }

    /// Creates a constant curve.
    pub(super) fn flat(cost: Cost) -> Self {
        Self {
            points: vec![(0, cost.ns)],
            known: cost,
            of: "",
        }
    }

    /// Returns the curve with a constant added.
    pub(super) fn raised(mut self, by_ns: u64) -> Self {
        for (_, ns) in &mut self.points {
            *ns = ns.saturating_add(by_ns);
        }
        self
    }

    /// Returns the cost at a number, rounded up. Below the first point it is the first point's; beyond the last it continues the
    /// last slope, with an assumption.
    pub(super) fn at(&self, number: u64) -> Cost {
        let after = self.points.partition_point(|(at, _)| *at < number);
        let mut cost = self.known.clone();
        cost.ns = match (
            self.points.get(after.wrapping_sub(1)),
            self.points.get(after),
        ) {
            (_, Some((at, ns))) if *at == number => *ns,
            (Some(low), Some(high)) => Line::through(low, high).at(number),
            (None, Some((_, ns))) => *ns,
            (Some(last), None) => match self.points.get(after.wrapping_sub(2)) {
                Some(before) => {
                    cost.assumption.get_or_insert_with(|| self.beyond(last.0));
                    Line::through(before, last).at(number)
                }
                None => last.1,
            },
            (None, None) => 0,
        };
        cost
    }

    fn beyond(&self, last: u64) -> String {
        format!(
            "{} was measured up to {last} {}: beyond, it is assumed to grow as before",
            self.known.source, self.of
        )
    }
}

/// The line through two points of a curve.
struct Line {
    from: u64,
    from_ns: u64,
    width: u64,
    rise_ns: u64,
}

impl Line {
    /// Both points are a number and its cost in nanoseconds.
    fn through(low: &(u64, u64), high: &(u64, u64)) -> Self {
        Self {
            from: low.0,
            from_ns: low.1,
            width: high.0 - low.0,
            rise_ns: high.1.saturating_sub(low.1),
        }
    }

    /// Returns the cost at a number that is not before the first point, rounded up.
    fn at(&self, number: u64) -> u64 {
        // A product of two 64-bit numbers fits into 128 bits.
        let risen = u128::from(self.rise_ns) * u128::from(number - self.from);
        let ns = u128::from(self.from_ns) + risen.div_ceil(u128::from(self.width));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Returns the median, the larger of two middle values; 0 of none.
pub(super) fn middle(mut values: Vec<f64>) -> u64 {
    values.sort_by(f64::total_cmp);
    values
        .get(values.len() / 2)
        .map_or(0, |value| whole_ns(*value))
}

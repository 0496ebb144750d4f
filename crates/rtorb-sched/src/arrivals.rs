//! How often jobs arrive: the arrival curve of a task, and the phase of its arrivals.

/// A burst: jobs that arrive closer together than the period.
///
/// At most `jobs` arrive in any window of one period, and two arrivals are at least `gap_ns` apart. One job per period is the
/// sporadic task of Mok (1983).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Burst {
    /// The number of jobs in a period, at least 1.
    pub jobs: u32,
    /// The least time between two arrivals; `jobs` of them are at most a period.
    pub gap_ns: u64,
}

impl Burst {
    /// One job per period.
    pub const NONE: Self = Self { jobs: 1, gap_ns: 0 };
}

/// The static offset of a strictly periodic task: its jobs arrive at `offset_ns`, one period later, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The arrival of the first job.
    pub offset_ns: u64,
    /// The clock that measures the offset: any number. Only offsets on the same clock are related.
    pub clock: usize,
}

/// The upper arrival curve of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Arrivals {
    pub(crate) period_ns: u64,
    pub(crate) burst: Burst,
}

impl Arrivals {
    /// Returns the largest number of arrivals in a half-open window:
    ///
    /// ```text
    /// (1)  A(s) = n floor(s / T) + min(n, ceil((s mod T) / g))    for n jobs in T, at least g apart
    ///           = ceil(s / T)                                     for n = 1
    /// ```
    ///
    /// (Tindell, Burns and Wellings 1994, "sporadically periodic" tasks.) Any `n + 1` arrivals span at least `T`, and `q <= n` at
    /// least `(q - 1) g`; so a window of `s` has no more.
    pub(crate) fn jobs_in(&self, span_ns: u128) -> u64 {
        let (period_ns, jobs) = (u128::from(self.period_ns), u128::from(self.burst.jobs));
        if jobs == 1 {
            return clamp(span_ns.div_ceil(period_ns));
        }
        let rest_ns = span_ns % period_ns;
        let begun = match u128::from(self.burst.gap_ns) {
            0 => jobs * u128::from(rest_ns > 0),
            gap_ns => rest_ns.div_ceil(gap_ns).min(jobs),
        };
        clamp(
            (span_ns / period_ns)
                .saturating_mul(jobs)
                .saturating_add(begun),
        )
    }

    /// Returns the largest number of arrivals from a moment to one that is `since_ns` later, with both; 0 if it is earlier.
    pub(crate) fn jobs_until(&self, since_ns: i128) -> u64 {
        u128::try_from(since_ns).map_or(0, |since_ns| self.jobs_in(since_ns + 1))
    }

    /// Returns how long after the first of a dense sequence of arrivals the one with this number, from 0, is.
    pub(crate) fn arrival_ns(&self, number: u64) -> Option<u64> {
        let jobs = u64::from(self.burst.jobs);
        let periods_ns = (number / jobs).checked_mul(self.period_ns)?;
        let within_ns = (number % jobs).checked_mul(self.burst.gap_ns)?;
        periods_ns.checked_add(within_ns)
    }

    /// Returns the least time between two arrivals.
    pub(crate) fn gap_ns(&self) -> u64 {
        if self.burst.jobs == 1 {
            self.period_ns
        } else {
            self.burst.gap_ns
        }
    }

    /// Returns the moments within the first period at which [`jobs_until`](Self::jobs_until) grows.
    pub(crate) fn growths_ns(&self) -> impl Iterator<Item = u64> + use<> {
        let (jobs, gap_ns) = (u64::from(self.burst.jobs), self.burst.gap_ns);
        let distinct = if gap_ns == 0 { 1 } else { jobs };
        (0..distinct).map(move |number| number.saturating_mul(gap_ns))
    }

    /// Returns the first moment after another at which [`jobs_until`](Self::jobs_until) grows.
    pub(crate) fn next_growth_ns(&self, since_ns: i128) -> i128 {
        let period_ns = i128::from(self.period_ns);
        let rest_ns = since_ns.rem_euclid(period_ns);
        let begun_ns = since_ns - rest_ns;
        let within = self
            .growths_ns()
            .map(i128::from)
            .find(|&growth_ns| growth_ns > rest_ns);
        begun_ns + within.unwrap_or(period_ns)
    }

    /// Returns the last moment up to another, or that one, at which [`jobs_until`](Self::jobs_until) grows.
    pub(crate) fn last_growth_ns(&self, until_ns: u64) -> u64 {
        let rest_ns = until_ns % self.period_ns;
        let within = self
            .growths_ns()
            .take_while(|&growth_ns| growth_ns <= rest_ns);
        until_ns - rest_ns + within.last().unwrap_or(0)
    }
}

fn clamp(jobs: u128) -> u64 {
    u64::try_from(jobs).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most arrivals in a window of this length, from every placement of dense arrivals that the definition allows.
    fn by_hand(arrivals: Arrivals, span_ns: u128) -> u64 {
        let dense = (0..).map(|number| u128::from(arrivals.arrival_ns(number).expect("small")));
        dense.take_while(|&arrival_ns| arrival_ns < span_ns).count() as u64
    }

    #[test]
    fn the_curve_counts_the_densest_arrivals() {
        for (period_ns, jobs, gap_ns) in [(10, 1, 0), (10, 3, 2), (12, 4, 3), (7, 2, 0), (5, 5, 1)]
        {
            let arrivals = Arrivals {
                period_ns,
                burst: Burst { jobs, gap_ns },
            };
            for span_ns in 0..60 {
                let most = by_hand(arrivals, span_ns);
                assert_eq!(arrivals.jobs_in(span_ns), most, "{arrivals:?} in {span_ns}");
            }
            for since_ns in 0..60_u64 {
                let grows = |at: u64| {
                    let at = i128::from(at);
                    arrivals.jobs_until(at) > arrivals.jobs_until(at - 1)
                };
                let next = (since_ns + 1..).find(|&at| grows(at)).map(i128::from);
                assert_eq!(Some(arrivals.next_growth_ns(since_ns.into())), next);
                let last = (0..=since_ns).rev().find(|&at| grows(at));
                assert_eq!(Some(arrivals.last_growth_ns(since_ns)), last);
            }
        }
    }
}

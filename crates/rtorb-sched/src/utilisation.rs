//! Processor utilisation, exactly, and the bounds that need nothing else.

use core::cmp::Ordering;
use num_bigint::BigUint;

use crate::arrivals::{Arrivals, Burst};
use crate::task::Task;

/// The sum over tasks of worst-case execution time divided by period: an exact fraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utilisation {
    numerator: BigUint,
    denominator: BigUint,
}

/// The result of a utilisation bound for a task set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Rate-monotonic priorities meet all deadlines.
    Holds,
    /// The utilisation exceeds the bound, which proves nothing: compute response times.
    DoesNotTell,
    /// The bound requires deadlines equal to periods, no jitter and no blocking; these tasks differ.
    DoesNotApply,
}

impl Utilisation {
    /// Computes the utilisation of tasks. Each must have a period.
    #[must_use]
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Self {
        let each = tasks.into_iter();
        Self::of_shares(each.map(|task| share(task.arrivals(), task.worst_ns)))
    }

    /// Computes the utilisation from pairs of worst-case execution time and period.
    pub(crate) fn of_shares(shares: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut sum = Self {
            numerator: BigUint::ZERO,
            denominator: BigUint::from(1_u32),
        };
        for (worst, period) in shares {
            // The denominator is the least common multiple of the periods so far: it stays small if periods are harmonic.
            let left = u64::try_from(&sum.denominator % period).unwrap_or_default();
            let factor = period / greatest_common_divisor(period, left);
            sum.numerator *= factor;
            sum.denominator *= factor;
            sum.numerator += &sum.denominator / period * worst;
        }
        sum
    }

    /// Compares the utilisation with 1.
    #[must_use]
    pub fn compared_with_one(&self) -> Ordering {
        self.numerator.cmp(&self.denominator)
    }

    /// Returns whether the utilisation exceeds 1, so that no schedule can meet all deadlines.
    #[must_use]
    pub fn exceeds_one(&self) -> bool {
        self.compared_with_one() == Ordering::Greater
    }

    /// Returns the utilisation in millionths, rounded up; for display.
    #[must_use]
    pub fn millionths(&self) -> u64 {
        let scaled = &self.numerator * 1_000_000_u32;
        let up = (scaled + &self.denominator - 1_u32) / &self.denominator;
        u64::try_from(up).unwrap_or(u64::MAX)
    }

    /// Tests the bound of Liu and Layland (1973, theorem 5): n tasks with U <= n(2^(1/n) - 1).
    ///
    /// The power is rounded up in its 256th binary digit, so the test never accepts a set that fails the bound.
    #[must_use]
    pub fn liu_layland(tasks: &[Task]) -> Bound {
        judge(tasks, |tasks| {
            let total = Self::of(tasks);
            let count = tasks.len() as u64;
            let denominator = &total.denominator * count;
            let each = divided_up(
                (total.numerator + &denominator) << FRACTION_BITS,
                &denominator,
            );
            let mut power = BigUint::from(1_u32) << FRACTION_BITS;
            let two = BigUint::from(2_u32) << FRACTION_BITS;
            for _ in 0..count {
                power = divided_up(power * &each, &(BigUint::from(1_u32) << FRACTION_BITS));
                if power > two {
                    return false;
                }
            }
            true
        })
    }

    /// Tests the hyperbolic bound of Bini, Buttazzo and Buttazzo (2003, theorem 1): the product of (U_i + 1) is at most 2. Exact.
    #[must_use]
    pub fn hyperbolic(tasks: &[Task]) -> Bound {
        judge(tasks, |tasks| {
            let (mut product, mut periods) = (BigUint::from(1_u32), BigUint::from(2_u32));
            for task in tasks {
                product *= u128::from(task.worst_ns) + u128::from(task.period_ns);
                periods *= task.period_ns;
            }
            product <= periods
        })
    }
}

/// Returns the execution in a period, and the period.
pub(crate) fn share(arrivals: Arrivals, worst_ns: u64) -> (u64, u64) {
    let jobs = u64::from(arrivals.burst.jobs);
    (worst_ns.saturating_mul(jobs), arrivals.period_ns)
}

fn judge(tasks: &[Task], holds: impl Fn(&[Task]) -> bool) -> Bound {
    let implicit = |task: &Task| {
        task.deadline_ns == task.period_ns
            && task.burst == Burst::NONE
            && task.jitter_ns == 0
            && task.blocking_ns == 0
    };
    if !tasks.iter().all(implicit) {
        Bound::DoesNotApply
    } else if holds(tasks) {
        Bound::Holds
    } else {
        Bound::DoesNotTell
    }
}

fn divided_up(number: BigUint, by: &BigUint) -> BigUint {
    (number + by - 1_u32) / by
}

pub(crate) fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

const FRACTION_BITS: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(shares: &[(u64, u64)]) -> Vec<Task> {
        let each = |&(worst, period): &(u64, u64)| Task::periodic(period, worst);
        shares.iter().map(each).collect()
    }

    #[test]
    fn a_sum_is_exact() {
        let thirds = tasks(&[(1, 3), (1, 3), (1, 3)]);
        assert_eq!(
            Utilisation::of(&thirds).compared_with_one(),
            Ordering::Equal
        );
        let more = tasks(&[(1, 3), (1, 3), (1, 3), (1, u64::MAX)]);
        assert!(Utilisation::of(&more).exceeds_one());
        assert_eq!(Utilisation::of(&more).millionths(), 1_000_001);
        assert_eq!(Utilisation::of(&[]).millionths(), 0);
    }

    #[test]
    fn the_bounds_of_two_tasks() {
        // 2 (sqrt 2 - 1) is 0.828427...
        let below = tasks(&[(414_213, 1_000_000), (414_213, 1_000_000)]);
        assert_eq!(Utilisation::liu_layland(&below), Bound::Holds);
        let above = tasks(&[(414_214, 1_000_000), (414_214, 1_000_000)]);
        assert_eq!(Utilisation::liu_layland(&above), Bound::DoesNotTell);
        assert_eq!(Utilisation::hyperbolic(&above), Bound::DoesNotTell);
        // 3/2 by 4/3 is exactly 2: the hyperbolic bound takes what Liu and Layland's does not.
        let uneven = tasks(&[(1, 2), (1, 3)]);
        assert_eq!(Utilisation::liu_layland(&uneven), Bound::DoesNotTell);
        assert_eq!(Utilisation::hyperbolic(&uneven), Bound::Holds);
        assert_eq!(Utilisation::liu_layland(&tasks(&[(7, 7)])), Bound::Holds);
    }

    #[test]
    fn bounds_are_not_for_other_deadlines() {
        let late = [Task::periodic(10, 1).with_deadline(9)];
        assert_eq!(Utilisation::hyperbolic(&late), Bound::DoesNotApply);
        let blocked = [Task::periodic(10, 1).with_blocking(1)];
        assert_eq!(Utilisation::liu_layland(&blocked), Bound::DoesNotApply);
    }
}

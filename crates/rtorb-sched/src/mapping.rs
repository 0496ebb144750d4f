//! Levels to the priorities of a host.

use thiserror::Error;

/// The priorities that may be given out. Where the host's more urgent priorities have lower numbers, so has `most_urgent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityRange {
    /// The least urgent one.
    pub least_urgent: i32,
    /// The most urgent one.
    pub most_urgent: i32,
}

/// More levels than priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{needed} levels need as many priorities, and {least_urgent} to {most_urgent} are {available}: allow more, or let operations share rates, deadlines or criticalities"
)]
pub struct InsufficientLevels {
    /// How many levels there are.
    pub needed: u32,
    /// How many priorities there are.
    pub available: u32,
    /// The range that was given.
    pub least_urgent: i32,
    /// The range that was given.
    pub most_urgent: i32,
}

impl PriorityRange {
    /// How many priorities it has.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.least_urgent
            .abs_diff(self.most_urgent)
            .saturating_add(1)
    }

    /// A priority for each of so many levels, the most urgent first, without gaps from the most urgent priority on.
    ///
    /// # Errors
    /// [`InsufficientLevels`] when there are not enough; levels are never merged unseen, for a merged level has other
    /// response times than those that were analysed.
    pub fn assign(self, levels: u32) -> Result<Vec<i32>, InsufficientLevels> {
        if levels > self.count() {
            return Err(InsufficientLevels {
                needed: levels,
                available: self.count(),
                least_urgent: self.least_urgent,
                most_urgent: self.most_urgent,
            });
        }
        let towards = if self.most_urgent >= self.least_urgent {
            -1
        } else {
            1
        };
        let each = (0..levels).scan(self.most_urgent, |next, _| {
            let this = *next;
            *next = next.saturating_add(towards);
            Some(this)
        });
        Ok(each.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_and_too_few() {
        let upwards = PriorityRange {
            least_urgent: 1,
            most_urgent: 3,
        };
        assert_eq!(upwards.assign(2), Ok(vec![3, 2]));
        let downwards = PriorityRange {
            least_urgent: 255,
            most_urgent: 0,
        };
        assert_eq!(downwards.assign(3), Ok(vec![0, 1, 2]));
        let few = upwards.assign(4).unwrap_err();
        assert_eq!((few.needed, few.available), (4, 3));
        assert!(few.to_string().contains("1 to 3"), "{few}");
        let all = PriorityRange {
            least_urgent: i32::MIN,
            most_urgent: i32::MAX,
        };
        assert_eq!(all.count(), u32::MAX, "2^32 is told as one less");
        assert_eq!(all.assign(1), Ok(vec![i32::MAX]));
    }
}

//! Levels mapped to priorities of a host.

use thiserror::Error;

/// The range of priorities that may be assigned. On a host whose more urgent priorities have lower numbers, `most_urgent` is the
/// lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityRange {
    /// The least urgent priority.
    pub least_urgent: i32,
    /// The most urgent priority.
    pub most_urgent: i32,
}

/// There are more levels than priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{needed} levels need {needed} priorities, but {least_urgent} to {most_urgent} are only {available}: allow more, or let operations share rates, deadlines or criticalities"
)]
pub struct InsufficientLevels {
    /// The number of levels.
    pub needed: u32,
    /// The number of priorities.
    pub available: u32,
    /// The range that was given.
    pub least_urgent: i32,
    /// The range that was given.
    pub most_urgent: i32,
}

impl PriorityRange {
    /// Returns the number of priorities in the range.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.least_urgent
            .abs_diff(self.most_urgent)
            .saturating_add(1)
    }

    /// Assigns a priority to each level, the most urgent first, from the most urgent priority on without gaps.
    ///
    /// # Errors
    /// [`InsufficientLevels`] if there are too few priorities. Levels are never merged silently: a merged level has other
    /// response times than the analysed one.
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
    fn assigns_in_both_directions_and_refuses_too_few() {
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

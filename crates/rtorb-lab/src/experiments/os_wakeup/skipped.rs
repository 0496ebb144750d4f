//! The wake-ups that a late one skips.

/// Adds to wake-ups of a loop with this interval those that it skipped, as ours and cyclictest's do with moments that have passed: each
/// is late until the wake-up that skipped it. Without them, the longest delay would be one sample of many.
pub(super) fn with_skipped(late_ns: &[u64], interval_ns: u64) -> Vec<u64> {
    let mut all = Vec::with_capacity(late_ns.len());
    for late_ns in late_ns {
        all.push(*late_ns);
        let skipped = late_ns.saturating_sub(1) / interval_ns;
        all.extend((1..=skipped).map(|moment| late_ns - moment * interval_ns));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_that_is_intervals_late_has_skipped_others() {
        assert_eq!(with_skipped(&[3, 100, 20], 100), [3, 100, 20]);
        // Moments 101 and 201 had passed; at 301 the loop was in time.
        assert_eq!(with_skipped(&[301, 5], 100), [301, 201, 101, 1, 5]);
        assert_eq!(with_skipped(&[300], 100), [300, 200, 100]);
    }
}

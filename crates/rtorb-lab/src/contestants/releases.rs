//! The planned releases of what is paced. A time counts from the planned release: a caller that is held up by one call would
//! otherwise leave out the very calls that would have waited.

use rtorb_os::timer::Release;

/// Returns the planned times of the releases that one call stands for, in ns of CLOCK_MONOTONIC: those that were skipped before it,
/// earliest first, and its own.
pub(super) fn planned_ns(release: Release, period_ns: u64) -> impl Iterator<Item = u64> {
    let before = (0..=release.missed).rev();
    before.map(move |periods| release.scheduled_ns - periods * period_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_release_stands_for_those_that_it_skips() {
        let release = |missed| Release {
            scheduled_ns: 1_000,
            lateness_ns: 7,
            missed,
        };
        let planned = |missed| planned_ns(release(missed), 100).collect::<Vec<_>>();
        assert_eq!(planned(0), [1_000]);
        assert_eq!(planned(3), [700, 800, 900, 1_000]);
    }
}

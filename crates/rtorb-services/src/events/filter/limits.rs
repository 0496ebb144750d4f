//! What one subscription may take of a channel.

/// Bounds of one subscription; [`Subscription::build`](super::Subscription::build) refuses what is beyond them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterLimits {
    /// Entries of the list, designators included. 256: where the lookup alone does not answer, each costs some nanoseconds an event,
    /// and a consumer may ask for no more than a few microseconds of a supplier's thread.
    pub entries_max: usize,
    /// Designators inside each other. 16: evaluation goes down as deep on a stack of a few tens of KiB.
    pub depth_max: usize,
    /// Timeouts. 16: a lane looks at all of them when one is due.
    pub timeouts_max: usize,
    /// The shortest period of a timeout in nanoseconds. 100 us: a shorter one would be a lane's whole work.
    pub period_ns_min: u64,
    /// The longest period of a timeout in nanoseconds. A year: what is longer is a mistake of units.
    pub period_ns_max: u64,
    /// Octets reserved for the events that conjunctions remember. 4 KiB: eighty events without data. More is taken when it is needed,
    /// once, and kept.
    pub remembered_octets: usize,
    /// Octets that conjunctions may remember; trees that have any share them equally. 1 MiB. An event beyond it is not remembered, and
    /// [`Subscription::forgotten`](super::Subscription::forgotten) counts it.
    pub remembered_octets_max: usize,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self {
            entries_max: 256,
            depth_max: 16,
            timeouts_max: 16,
            period_ns_min: 100_000,
            period_ns_max: 365 * 24 * 3600 * 1_000_000_000,
            remembered_octets: 4096,
            remembered_octets_max: 1 << 20,
        }
    }
}

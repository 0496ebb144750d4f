//! The limits of one subscription.

/// The limits of one subscription. [`Subscription::build`](super::Subscription::build) refuses larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterLimits {
    /// Entries of the list, with designators. 256: where the lookup is not enough, each entry costs some nanoseconds for an
    /// event, and one consumer may cost a supplier's thread a few microseconds at most.
    pub entries_max: usize,
    /// The depth of designators. 16: evaluation recurses as deep, on a stack of a few tens of KiB.
    pub depth_max: usize,
    /// Timeouts. 16: a lane looks at all of them when one is due.
    pub timeouts_max: usize,
    /// The shortest period of a timeout in nanoseconds. 100 us: a shorter one would be a lane's whole work.
    pub period_ns_min: u64,
    /// The longest period of a timeout in nanoseconds. A year: a longer one is a mistake of units.
    pub period_ns_max: u64,
    /// Bytes reserved for the events that conjunctions remember. 4 KiB: eighty events without data. It grows when needed and does
    /// not shrink.
    pub remembered_bytes: usize,
    /// The greatest number of bytes that conjunctions remember; trees with conjunctions share them equally. 1 MiB. An event
    /// beyond it is not remembered, and [`Subscription::forgotten`](super::Subscription::forgotten) counts it.
    pub remembered_bytes_max: usize,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self {
            entries_max: 256,
            depth_max: 16,
            timeouts_max: 16,
            period_ns_min: 100_000,
            period_ns_max: 365 * 24 * 3600 * 1_000_000_000,
            remembered_bytes: 4096,
            remembered_bytes_max: 1 << 20,
        }
    }
}

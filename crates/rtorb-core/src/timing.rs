//! The annotations of an operation: its times and its other requirements.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// The timing of an operation and its other requirements, as annotations in IDL state them. Generated code has one for each annotated
/// operation of an interface.
#[derive(Debug)]
pub struct OperationTiming {
    name: &'static str,
    is_oneway: bool,
    #[doc(hidden)]
    pub worst_ns: Option<u64>,
    #[doc(hidden)]
    pub deadline_ns: Option<u64>,
    #[doc(hidden)]
    pub period_ns: Option<u64>,
    criticality: Option<Criticality>,
    dscp: Option<u8>,
    message_bytes_max: Option<u32>,
    queue_max: Option<u32>,
    miss_ratio: Option<MissRatio>,
    /// The number by which each ORB finds the counters: unique in this process, from 1; 0 until the first use.
    number: AtomicU32,
}

/// How many of any calls in succession may miss their deadline (`@statistical`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissRatio {
    /// The most late calls.
    pub misses: u32,
    /// The calls among which they are counted.
    pub calls: u32,
}

impl MissRatio {
    /// The largest number of late calls that is counted.
    pub const MISSES_MAX: u32 = 64;

    /// Returns true if some calls must be in time, and the late ones can be counted.
    #[must_use]
    pub const fn is_countable(self) -> bool {
        self.misses < self.calls && self.misses <= Self::MISSES_MAX
    }
}

/// The severity of a missed deadline (`@criticality`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are what there is to say")]
pub enum Criticality {
    VeryLow,
    Low,
    Medium,
    High,
    VeryHigh,
}

/// The last assigned number.
static LAST_NUMBER: AtomicU32 = AtomicU32::new(0);

impl OperationTiming {
    /// Makes the timing of an operation without annotations.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_oneway: false,
            worst_ns: None,
            deadline_ns: None,
            period_ns: None,
            criticality: None,
            dscp: None,
            message_bytes_max: None,
            queue_max: None,
            miss_ratio: None,
            number: AtomicU32::new(0),
        }
    }

    /// Marks the operation as oneway.
    #[must_use]
    pub const fn oneway(mut self) -> Self {
        self.is_oneway = true;
        self
    }

    /// Sets the longest execution of a call (`@worst_case_time`).
    #[must_use]
    pub const fn worst_case_ns(mut self, ns: u64) -> Self {
        self.worst_ns = Some(ns);
        self
    }

    /// Sets the longest time from the arrival of a call to its end (`@deadline`).
    #[must_use]
    pub const fn deadline_ns(mut self, ns: u64) -> Self {
        self.deadline_ns = Some(ns);
        self
    }

    /// Sets the shortest time between two calls (`@period`).
    #[must_use]
    pub const fn period_ns(mut self, ns: u64) -> Self {
        self.period_ns = Some(ns);
        self
    }

    /// Sets the severity of a missed deadline (`@criticality`).
    #[must_use]
    pub const fn critical(mut self, criticality: Criticality) -> Self {
        self.criticality = Some(criticality);
        self
    }

    /// Sets the code point of its messages (`@network_priority`).
    #[must_use]
    pub const fn network_priority(mut self, dscp: u8) -> Self {
        self.dscp = Some(dscp);
        self
    }

    /// Sets the most bytes of a request and of a reply (`@largest_message`).
    #[must_use]
    pub const fn largest_message(mut self, bytes: u32) -> Self {
        self.message_bytes_max = Some(bytes);
        self
    }

    /// Sets the most requests that wait in queues of the ORB (`@queue`).
    #[must_use]
    pub const fn queue(mut self, requests: u32) -> Self {
        self.queue_max = Some(requests);
        self
    }

    /// Sets how many of any calls in succession may be late (`@statistical`).
    #[must_use]
    pub const fn statistical(mut self, misses: u32, calls: u32) -> Self {
        self.miss_ratio = Some(MissRatio { misses, calls });
        self
    }

    /// Returns `Module::Interface::operation`. The interface is the one that is called or served, also for an inherited operation.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true for a oneway.
    pub fn is_oneway(&self) -> bool {
        self.is_oneway
    }

    /// Returns the longest execution of a call (`@worst_case_time`).
    pub fn worst_case_time(&self) -> Option<Duration> {
        self.worst_ns.map(Duration::from_nanos)
    }

    /// Returns the longest time from the arrival of a call to its end (`@deadline`).
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline_ns.map(Duration::from_nanos)
    }

    /// Returns the shortest time between two calls (`@period`).
    pub fn period(&self) -> Option<Duration> {
        self.period_ns.map(Duration::from_nanos)
    }

    /// Returns the differentiated services code point of its requests and replies, 0 to 63 (`@network_priority`).
    pub fn dscp(&self) -> Option<u8> {
        self.dscp
    }

    /// Returns the most bytes of a request and of a reply (`@largest_message`).
    pub fn message_bytes_max(&self) -> Option<u32> {
        self.message_bytes_max
    }

    /// Returns the most requests that wait in queues of the ORB (`@queue`).
    pub fn queue_max(&self) -> Option<u32> {
        self.queue_max
    }

    /// Returns how many calls may be late (`@statistical`).
    pub fn miss_ratio(&self) -> Option<MissRatio> {
        self.miss_ratio
    }

    /// Returns the name of the operation on the wire.
    pub fn wire_name(&self) -> &'static str {
        match self.name.rsplit_once(':') {
            Some((_, operation)) => operation,
            None => self.name,
        }
    }

    /// Returns the severity of a missed deadline: `@criticality`, very high for `@critical`, very low for `@best_effort`.
    pub fn criticality(&self) -> Option<Criticality> {
        self.criticality
    }

    /// Returns the number, if one is assigned.
    #[doc(hidden)]
    #[inline]
    pub fn known_number(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.number.load(Ordering::Relaxed))
    }

    /// Returns the number, and assigns one at the first use. Several threads get the same number.
    #[doc(hidden)]
    #[cold]
    pub fn number(&self) -> NonZeroU32 {
        if let Some(known) = self.known_number() {
            return known;
        }
        let next = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
        let settled = self
            .number
            .compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed)
            .map_or_else(|other| other, |_| next);
        NonZeroU32::new(settled).expect("a program has fewer operations than numbers")
    }
}

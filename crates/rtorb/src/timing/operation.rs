//! The timing annotations of an operation.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The timing of an operation, as its annotations in IDL say; generated code has one for each annotated operation of an interface.
#[derive(Debug)]
pub struct OperationTiming {
    name: &'static str,
    is_oneway: bool,
    pub(super) worst_ns: Option<u64>,
    pub(super) deadline_ns: Option<u64>,
    pub(super) period_ns: Option<u64>,
    criticality: Option<Criticality>,
    /// The number by which each ORB finds the counters: unique in this process, from 1; 0 until the first use.
    number: AtomicU32,
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

    /// Returns the severity of a missed deadline (`@criticality`).
    pub fn criticality(&self) -> Option<Criticality> {
        self.criticality
    }

    /// Returns the number, if one is assigned.
    #[inline]
    pub(super) fn known_number(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.number.load(Ordering::Relaxed))
    }

    /// Returns the number, and assigns one at the first use. Several threads get the same number.
    #[cold]
    pub(super) fn number(&self) -> NonZeroU32 {
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

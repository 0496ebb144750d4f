//! The timing annotations of an operation.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// The timing of an operation, as its annotations in IDL say; generated code has one for each annotated operation of an interface.
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
    /// Its number in this process, from 1, by which every ORB finds its counters; 0 until it is first asked for.
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

/// The last number given out.
static LAST_NUMBER: AtomicU32 = AtomicU32::new(0);

impl OperationTiming {
    /// Of the operation with that name, of which nothing is said yet.
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

    /// Nothing comes back from it.
    #[must_use]
    pub const fn oneway(mut self) -> Self {
        self.is_oneway = true;
        self
    }

    /// `@worst_case_time`.
    #[must_use]
    pub const fn worst_case_ns(mut self, ns: u64) -> Self {
        self.worst_ns = Some(ns);
        self
    }

    /// `@deadline`.
    #[must_use]
    pub const fn deadline_ns(mut self, ns: u64) -> Self {
        self.deadline_ns = Some(ns);
        self
    }

    /// `@period`.
    #[must_use]
    pub const fn period_ns(mut self, ns: u64) -> Self {
        self.period_ns = Some(ns);
        self
    }

    /// `@criticality`.
    #[must_use]
    pub const fn critical(mut self, criticality: Criticality) -> Self {
        self.criticality = Some(criticality);
        self
    }

    /// `Module::Interface::operation`. One that is inherited has the name of the interface that it is called or served by.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if nothing comes back from it.
    pub fn is_oneway(&self) -> bool {
        self.is_oneway
    }

    /// The longest that one call of it executes (`@worst_case_time`).
    pub fn worst_case_time(&self) -> Option<Duration> {
        self.worst_ns.map(Duration::from_nanos)
    }

    /// From a call's arrival to when it must be done (`@deadline`).
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline_ns.map(Duration::from_nanos)
    }

    /// The least time between two calls (`@period`).
    pub fn period(&self) -> Option<Duration> {
        self.period_ns.map(Duration::from_nanos)
    }

    /// The severity of a missed deadline (`@criticality`).
    pub fn criticality(&self) -> Option<Criticality> {
        self.criticality
    }

    /// Its number, once it has one.
    #[doc(hidden)]
    #[inline]
    pub fn known_number(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.number.load(Ordering::Relaxed))
    }

    /// Its number; two that ask at once get the same one.
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

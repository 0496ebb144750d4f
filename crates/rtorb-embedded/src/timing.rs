//! Timing annotations of IDL, which this crate accepts and does not count: it has no clock.

/// The timing of an operation that is annotated in IDL. Nothing of it is kept.
#[derive(Clone, Copy, Debug)]
pub struct OperationTiming;

/// The severity of a missed deadline (`@criticality`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are what there is to say")]
pub enum Criticality {
    VeryLow,
    Low,
    Medium,
    High,
    VeryHigh,
}

impl OperationTiming {
    /// Of the operation with that name.
    #[must_use]
    pub const fn new(_name: &'static str) -> Self {
        Self
    }

    /// Nothing comes back from it.
    #[must_use]
    pub const fn oneway(self) -> Self {
        self
    }

    /// `@worst_case_time`.
    #[must_use]
    pub const fn worst_case_ns(self, _ns: u64) -> Self {
        self
    }

    /// `@deadline`.
    #[must_use]
    pub const fn deadline_ns(self, _ns: u64) -> Self {
        self
    }

    /// `@period`.
    #[must_use]
    pub const fn period_ns(self, _ns: u64) -> Self {
        self
    }

    /// `@criticality`.
    #[must_use]
    pub const fn critical(self, _criticality: Criticality) -> Self {
        self
    }
}

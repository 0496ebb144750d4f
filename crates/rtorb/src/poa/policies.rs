//! The policies of an adapter.

use crate::realtime::Policy;
use crate::timing::{EarlyCalls, Overrun, PeriodScope};

/// The policies of an adapter; the default is that of the root adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoaPolicies {
    /// Whether its objects outlive the process.
    pub lifespan: Lifespan,
    /// Who chooses object ids.
    pub id_assignment: IdAssignment,
    /// RT-CORBA policies, at most one of each type.
    pub rt: Vec<Policy>,
    /// What happens to calls that execute too long; `None` for what the ORB does.
    pub overrun: Option<Overrun>,
    /// What happens to calls that arrive too early; `None` for what the ORB does.
    pub early_calls: Option<EarlyCalls>,
    /// The calls that a period separates; `None` for those that the ORB separates.
    pub period_scope: Option<PeriodScope>,
}

impl PoaPolicies {
    /// References stay valid when the server is restarted; the application chooses the object ids.
    pub const PERSISTENT: Self = Self {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        rt: Vec::new(),
        overrun: None,
        early_calls: None,
        period_scope: None,
    };

    /// Returns the policies with another lifespan.
    #[must_use]
    pub const fn with_lifespan(mut self, lifespan: Lifespan) -> Self {
        self.lifespan = lifespan;
        self
    }

    /// Returns the policies with another assignment of ids.
    #[must_use]
    pub const fn with_id_assignment(mut self, id_assignment: IdAssignment) -> Self {
        self.id_assignment = id_assignment;
        self
    }

    /// Returns the policies with a choice for calls that execute too long.
    #[must_use]
    pub const fn with_overrun(mut self, overrun: Overrun) -> Self {
        self.overrun = Some(overrun);
        self
    }

    /// Returns the policies with a choice for calls that arrive too early.
    #[must_use]
    pub const fn with_early_calls(mut self, early_calls: EarlyCalls) -> Self {
        self.early_calls = Some(early_calls);
        self
    }

    /// Returns the policies with a choice of the calls that a period separates.
    #[must_use]
    pub const fn with_period_scope(mut self, scope: PeriodScope) -> Self {
        self.period_scope = Some(scope);
        self
    }

    /// Returns the policies with one more RT-CORBA policy.
    #[must_use]
    pub fn with(mut self, policy: Policy) -> Self {
        self.rt.push(policy);
        self
    }
}

/// LifespanPolicy (CORBA 3, 11.3.7.2).
//= CORBA 3 §Lifespan Policy
//# A transient object does not outlive its POA, and a persistent one can be activated again by the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifespan {
    /// References end with the process.
    #[default]
    Transient,
    /// References hold for a later process that makes the same adapter, listens on the same endpoint and activates
    /// the same id.
    Persistent,
}

/// IdAssignmentPolicy (CORBA 3, 11.3.7.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdAssignment {
    /// The adapter makes them.
    #[default]
    System,
    /// The application chooses them.
    User,
}

//! The policies of an adapter.

use crate::realtime::Policy;

/// What an adapter is made with; the default is the root adapter's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoaPolicies {
    /// Whether its objects outlive the process.
    pub lifespan: Lifespan,
    /// Who chooses object ids.
    pub id_assignment: IdAssignment,
    /// Policies of RT-CORBA, each type at most once.
    pub rt: Vec<Policy>,
}

impl PoaPolicies {
    /// Objects whose references stay good when the server is started again, under ids that the application chooses.
    pub const PERSISTENT: Self = Self {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        rt: Vec::new(),
    };

    /// The same with another lifespan.
    #[must_use]
    pub const fn with_lifespan(mut self, lifespan: Lifespan) -> Self {
        self.lifespan = lifespan;
        self
    }

    /// The same with ids from someone else.
    #[must_use]
    pub const fn with_id_assignment(mut self, id_assignment: IdAssignment) -> Self {
        self.id_assignment = id_assignment;
        self
    }

    /// The same with one more policy of RT-CORBA.
    #[must_use]
    pub fn with(mut self, policy: Policy) -> Self {
        self.rt.push(policy);
        self
    }
}

/// LifespanPolicy (CORBA 3, 11.3.7.2).
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
    /// The application gives them.
    User,
}

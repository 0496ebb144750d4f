//! Managers of adapters.

use crate::server::{ManagerState, PoaManagerState};
use std::sync::Arc;

/// Admits requests for a group of adapters, or refuses them (CORBA 3, 11.3.2).
#[derive(Clone, Debug)]
pub struct PoaManager {
    state: Arc<ManagerState>,
}

impl PoaManager {
    pub(super) fn new(state: Arc<ManagerState>) -> Self {
        Self { state }
    }

    /// Admits requests: the state of new adapters.
    pub fn activate(&self) {
        self.state.set(PoaManagerState::Active);
    }

    /// Refuses requests with TRANSIENT.
    pub fn discard_requests(&self) {
        self.state.set(PoaManagerState::Discarding);
    }

    /// Refuses requests with OBJ_ADAPTER. This state is final.
    pub fn deactivate(&self) {
        self.state.set(PoaManagerState::Inactive);
    }

    /// Returns the current state.
    pub fn state(&self) -> PoaManagerState {
        self.state.get()
    }
}

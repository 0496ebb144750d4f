//! The states of POA managers.

use crate::exception::{SystemException, local};
use core::sync::atomic::{AtomicU8, Ordering};

/// The state of a POA manager: whether its adapters admit requests. Implicit operations, such as `_is_a`, and LocateRequests are answered in
/// each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PoaManagerState {
    /// Admits requests.
    Active = 0,
    /// Refuses requests with TRANSIENT 1: clients may try again.
    Discarding = 1,
    /// Refuses requests with OBJ_ADAPTER 1. This state is final.
    Inactive = 2,
}

/// The state of a manager.
#[derive(Debug, Default)]
pub(crate) struct ManagerState(AtomicU8);

impl ManagerState {
    #[inline]
    pub(crate) fn get(&self) -> PoaManagerState {
        match self.0.load(Ordering::Relaxed) {
            0 => PoaManagerState::Active,
            1 => PoaManagerState::Discarding,
            _ => PoaManagerState::Inactive,
        }
    }

    /// The exception for a request that is not admitted.
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), SystemException> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err(local::NO_ROOM),
            _ => Err(local::INACTIVE),
        }
    }

    /// Sets the state; `Inactive` is final.
    pub(crate) fn set(&self, state: PoaManagerState) {
        let inactive = PoaManagerState::Inactive as u8;
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                (now != inactive).then_some(state as u8)
            });
    }
}

//! The states of POA managers.

use crate::exception::{SystemException, local};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// The state of a POA manager: whether its adapters admit requests. Implicit operations, such as `_is_a`, and LocateRequests are answered in
/// each state; but while it is inactive, no servant activator makes a servant for them: OBJ_ADAPTER 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PoaManagerState {
    /// Admits requests.
    Active = 0,
    /// Refuses requests with TRANSIENT 1: clients may try again.
    Discarding = 1,
    /// Refuses requests with OBJ_ADAPTER 1. This state is final.
    Inactive = 2,
    /// Requests wait until the state changes: at most [`Limits::queued_requests_max`](crate::Limits::queued_requests_max) of an ORB. One more is
    /// refused with TRANSIENT 1.
    Holding = 3,
}

/// The state of a manager, and the number of its requests that wait.
#[derive(Debug, Default)]
pub(crate) struct ManagerState {
    state: AtomicU8,
    held: AtomicU32,
}

impl ManagerState {
    #[inline]
    pub(crate) fn get(&self) -> PoaManagerState {
        match self.state.load(Ordering::Relaxed) {
            0 => PoaManagerState::Active,
            1 => PoaManagerState::Discarding,
            2 => PoaManagerState::Inactive,
            _ => PoaManagerState::Holding,
        }
    }

    /// Returns true if requests are admitted at once.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.get() == PoaManagerState::Active
    }

    /// Returns true if requests wait.
    pub(super) fn is_holding(&self) -> bool {
        self.get() == PoaManagerState::Holding
    }

    /// Makes the state of a new manager that the application has made.
    pub(crate) fn holding() -> Self {
        Self {
            state: AtomicU8::new(PoaManagerState::Holding as u8),
            held: AtomicU32::new(0),
        }
    }

    /// Returns the number of requests that wait.
    pub(crate) fn held(&self) -> u32 {
        self.held.load(Ordering::Relaxed)
    }

    /// Counts a request that waits.
    pub(super) fn note_held(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that waits no longer.
    pub(super) fn note_released(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the exception for a request that is refused.
    #[cold]
    pub(super) fn refusal(&self) -> Option<SystemException> {
        match self.get() {
            PoaManagerState::Active | PoaManagerState::Holding => None,
            PoaManagerState::Discarding => Some(local::NO_ROOM),
            PoaManagerState::Inactive => Some(local::INACTIVE),
        }
    }

    /// Sets the state; `Inactive` is final.
    pub(crate) fn set(&self, state: PoaManagerState) {
        let inactive = PoaManagerState::Inactive as u8;
        let _ = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                (now != inactive).then_some(state as u8)
            });
    }
}

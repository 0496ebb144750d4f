//! What lets requests for adapters in, or keeps them out.

use crate::exception::{ExceptionKind, SystemException};
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// Lets requests for a group of adapters in, or keeps them out (CORBA 3, 11.3.2).
#[derive(Clone, Debug)]
pub struct PoaManager {
    state: Arc<ManagerState>,
}

/// What a manager does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PoaManagerState {
    /// Calls the servants.
    Active = 0,
    /// Answers TRANSIENT 1, for a client to try again.
    Discarding = 1,
    /// Answers OBJ_ADAPTER 1, for good.
    Inactive = 2,
}

#[derive(Debug, Default)]
pub(crate) struct ManagerState(AtomicU8);

impl PoaManager {
    pub(super) fn new(state: Arc<ManagerState>) -> Self {
        Self { state }
    }

    /// Lets requests in; that is also how adapters begin.
    pub fn activate(&self) {
        self.state.set(PoaManagerState::Active);
    }

    /// Refuses requests with TRANSIENT until further notice.
    pub fn discard_requests(&self) {
        self.state.set(PoaManagerState::Discarding);
    }

    /// Refuses requests for good.
    pub fn deactivate(&self) {
        self.state.set(PoaManagerState::Inactive);
    }

    /// What it does now.
    pub fn state(&self) -> PoaManagerState {
        match self.state.0.load(Ordering::Relaxed) {
            0 => PoaManagerState::Active,
            1 => PoaManagerState::Discarding,
            _ => PoaManagerState::Inactive,
        }
    }
}

impl ManagerState {
    /// What a request is answered with unless it is let in.
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), SystemException> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err(SystemException::omg(ExceptionKind::Transient, 1)),
            _ => Err(SystemException::omg(ExceptionKind::ObjAdapter, 1)),
        }
    }

    /// Inactive is where it ends: nothing leads back.
    fn set(&self, state: PoaManagerState) {
        let inactive = PoaManagerState::Inactive as u8;
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                (now != inactive).then_some(state as u8)
            });
    }
}

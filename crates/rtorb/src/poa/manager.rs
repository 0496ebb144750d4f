//! Managers of adapters.

use super::adapter::Poa;
use super::adapters::Adapters;
use crate::server::{ManagerState, PoaManagerState};
use core::fmt;
use std::sync::Arc;

/// Admits the requests of a group of adapters, has them wait, or refuses them (CORBA 3, 11.3.2).
///
/// An adapter has the manager of its parent, or one that [`Poa::create_manager`] has made.
#[derive(Clone)]
pub struct PoaManager {
    pub(super) state: Arc<ManagerState>,
    pub(super) core: Arc<Adapters>,
}

impl Poa {
    /// Makes a manager for [`create_poa_with_manager`](Self::create_poa_with_manager). It holds requests until it is
    /// [activated](PoaManager::activate), as a new manager of the standard does.
    pub fn create_manager(&self) -> PoaManager {
        self.core.server.held.note_use();
        PoaManager {
            state: Arc::new(ManagerState::holding()),
            core: Arc::clone(&self.core),
        }
    }

    /// Returns the manager of this adapter.
    pub fn manager(&self) -> PoaManager {
        PoaManager {
            state: Arc::clone(&self.adapter.manager),
            core: Arc::clone(&self.core),
        }
    }
}

impl PoaManager {
    /// Admits requests: the state of the root adapter's manager. Requests that were held are served.
    pub fn activate(&self) {
        self.set(PoaManagerState::Active);
    }

    /// Has requests wait until the state changes. Requests in progress go on; [`wait_for_completion`](Self::wait_for_completion) waits for them.
    ///
    /// The requests of an ORB that wait have the bounds of a queue: [`Limits::queued_requests_max`](crate::Limits::queued_requests_max), and
    /// four messages of `message_bytes_max`; one more gets TRANSIENT 1. A request leaves when its client cancels it, with its connection, and, if
    /// its room is needed, when its deadline has passed. No thread waits that serves other clients: a held request is served by a thread of its
    /// pool later, perhaps after newer ones.
    ///
    /// Only the thread of [`ThreadPerConnection`](crate::DispatchStrategy::ThreadPerConnection), and a thread that calls an object of its own
    /// ORB, wait until their deadlines. They do not count against the bounds, and the former reads nothing meanwhile: it notices neither that
    /// its client cancels the request nor that it has gone.
    pub fn hold_requests(&self) {
        self.core.server.held.note_use();
        self.set(PoaManagerState::Holding);
    }

    /// Refuses requests with TRANSIENT 1, also those that were held.
    pub fn discard_requests(&self) {
        self.set(PoaManagerState::Discarding);
    }

    /// Refuses requests with OBJ_ADAPTER 1, also those that were held. This state is final: the other operations have no effect any more.
    ///
    /// Requests in progress go on, and objects stay active: [`Poa::destroy`] ends their servants, and
    /// [`deactivate_and_etherealize`](Self::deactivate_and_etherealize) those that servant activators have made. No servant activator makes one
    /// from now on: implicit operations of its objects that are not active get OBJ_ADAPTER 1 too.
    pub fn deactivate(&self) {
        self.set(PoaManagerState::Inactive);
    }

    /// Returns the current state.
    pub fn state(&self) -> PoaManagerState {
        self.state.get()
    }

    /// Returns the number of requests that wait until the state changes, or are about to be served after that.
    pub fn held_requests(&self) -> u32 {
        self.state.held()
    }

    //= CORBA 3 §Processing States
    //# From each state but inactive, which is final, a POA manager enters each other one.
    fn set(&self, state: PoaManagerState) {
        self.state.set(state);
        if state != PoaManagerState::Holding {
            self.core.server.held.release(&self.state);
        }
    }
}

impl fmt::Debug for PoaManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoaManager").field(&self.state()).finish()
    }
}

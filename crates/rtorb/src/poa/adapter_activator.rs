//! Adapter activators, which make the adapters of requests whose adapter does not exist yet.

use super::adapter::{Adapter, Poa};
use super::adapters::Adapters;
use crate::server::AdapterActivation;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str;
use std::sync::{Arc, Weak};

/// Makes the adapter with a name under another one. Returns false if there shall be none.
pub(super) type AdapterActivator = dyn Fn(&Poa, &str) -> bool + Send + Sync;

impl Poa {
    /// Makes adapters under this one when the first request for one of their objects comes, and in
    /// [`find_poa`](Self::find_poa) (AdapterActivator of CORBA 3, 11.3.3). So a server whose references are persistent makes only
    /// the adapters that are used.
    ///
    /// `unknown_adapter` gets this adapter and the name. It makes the adapter by [`create_poa`](Self::create_poa), and activates its
    /// objects or sets what serves them, before it returns true; it returns false for a name that has no adapter, and the client gets
    /// OBJECT_NOT_EXIST. It runs on the thread that reads the request, before the request has a priority. Several threads may run it at
    /// once for one name: then `create_poa` fails on all but one with [`PoaError::AdapterAlreadyExists`](super::PoaError).
    ///
    /// Adapters under an adapter that does not exist are made from the root on, by the activator of each parent. A later activator
    /// replaces the earlier one.
    pub fn set_adapter_activator(
        &self,
        unknown_adapter: impl Fn(&Self, &str) -> bool + Send + Sync + 'static,
    ) {
        let earlier = self
            .adapter
            .activator
            .lock()
            .replace(Arc::new(unknown_adapter));
        drop(earlier);
        let activation = || Box::new(Activators(Arc::downgrade(&self.core))) as _;
        self.core.server.activation.get_or_make(activation);
    }

    /// Asks this adapter's activator for the adapter with that name under this one.
    pub(super) fn activate_child(&self, name: &str) -> Option<Self> {
        let activator = self.adapter.activator.lock().clone()?;
        let made = catch_unwind(AssertUnwindSafe(|| activator(self, name)));
        // Another thread may have made it where this one was told that it exists.
        made.ok()?;
        self.child(name)
    }
}

/// The adapter activators of an ORB.
struct Activators(Weak<Adapters>);

impl AdapterActivation for Activators {
    fn activate(&self, path: &[u8]) -> bool {
        let (Some(orb), Ok(path)) = (self.0.upgrade(), str::from_utf8(path)) else {
            return false;
        };
        let Some(client) = orb.server.client.upgrade() else {
            return false;
        };
        let root: &Arc<Adapter> = &orb.root;
        let mut adapter = Poa::new(client, Arc::clone(&orb), Arc::clone(root));
        let mut is_made = false;
        for name in path.split('/') {
            let child = adapter.child(name).or_else(|| {
                is_made = true;
                adapter.activate_child(name)
            });
            let Some(child) = child else {
                return false;
            };
            adapter = child;
        }
        is_made
    }
}

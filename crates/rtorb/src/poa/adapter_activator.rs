//! Adapter activators, which make the adapters of requests whose adapter does not exist yet.

use super::adapter::{Adapter, Poa, PoaError};
use super::adapters::Adapters;
use crate::server::AdapterActivation;
use rtorb_os::sync::Mutex;
use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str;
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};

/// Makes the adapter with a name under another one. Returns false if there shall be none.
pub(super) type AdapterActivator = dyn Fn(&Poa, &str) -> bool + Send + Sync;

/// An adapter that an activator is making. Other threads that look for it wait.
pub(super) struct PendingAdapter {
    /// Locked until the activator has returned.
    making: Mutex<()>,
    maker: ThreadId,
}

impl PendingAdapter {
    /// An adapter that the calling thread makes.
    fn of_this_thread() -> Self {
        Self {
            making: Mutex::new(()),
            maker: thread::current().id(),
        }
    }

    /// Waits until the activator has returned, unless the calling thread runs it.
    fn wait(&self) {
        if self.maker != thread::current().id() {
            drop(self.making.lock());
        }
    }
}

impl Poa {
    /// Makes adapters under this one when the first request for one of their objects comes, and in
    /// [`find_poa`](Self::find_poa) (AdapterActivator of CORBA 3, 11.3.3). So a server whose references are persistent makes only
    /// the adapters that are used.
    ///
    /// `unknown_adapter` gets this adapter and the name. It makes the adapter by [`create_poa`](Self::create_poa), and activates its
    /// objects or sets what serves them, before it returns true; it returns false for a name that has no adapter, and the client gets
    /// OBJECT_NOT_EXIST 2. It runs on the thread that reads the request, before the request has a priority. Other requests for objects
    /// of the adapter that are not active yet, and calls of `find_poa`, wait until it has returned, with inheritance of priority; an object that it
    /// has activated is served at once. It must not wait for an adapter that another
    /// thread may be making.
    ///
    /// Adapters under an adapter that does not exist are made from the root on, by the activator of each parent. A later activator
    /// replaces the earlier one. It is asked in each state of this adapter's [manager](super::PoaManager): the manager of the new adapter
    /// says what becomes of the request.
    ///
    /// # Errors
    /// OBJ_ADAPTER `0x72746010` if the adapter is destroyed.
    pub fn set_adapter_activator(
        &self,
        unknown_adapter: impl Fn(&Self, &str) -> bool + Send + Sync + 'static,
    ) -> Result<(), PoaError> {
        let earlier = {
            // `destroy` takes the activator afterwards.
            let objects = self.adapter.objects.lock();
            objects.check_exists()?;
            let mut activator = self.adapter.activator.lock();
            activator.replace(Arc::new(unknown_adapter))
        };
        // It may use the adapter as it is dropped.
        drop(earlier);
        let activation = || Box::new(Activators(Arc::downgrade(&self.core))) as _;
        self.core.server.activation.get_or_make(activation);
        Ok(())
    }

    /// Returns the adapter with that name under this one, once its activator has returned. If there is none, asks this adapter's activator.
    pub(super) fn find_or_activate(&self, name: &str) -> Option<Self> {
        let pending = self.adapter.pending.lock().get(name).cloned();
        if let Some(pending) = pending {
            pending.wait();
        }
        self.child(name).or_else(|| self.activate_child(name))
    }

    /// Asks this adapter's activator for the adapter with that name under this one, or waits until another thread has done so.
    //= CORBA 3 §AdapterActivator Interface
    //# unknown_adapter is called once for each adapter that must be made for the target of a request to exist. Requests
    //# for the adapter wait until it has returned.
    // Only those for objects that are not active yet: the activator has made the others ready.
    fn activate_child(&self, name: &str) -> Option<Self> {
        let activator = self.adapter.activator.lock().clone()?;
        let own = Arc::new(PendingAdapter::of_this_thread());
        let making = own.making.lock();
        let theirs = match self.adapter.pending.lock().entry(name.to_owned()) {
            Entry::Occupied(theirs) => Some(Arc::clone(theirs.get())),
            Entry::Vacant(free) => {
                free.insert(Arc::clone(&own));
                None
            }
        };
        if let Some(theirs) = theirs {
            theirs.wait();
            return self.child(name);
        }
        // Another thread may have made it since this one looked for it.
        let made = self.child(name).map_or_else(
            || catch_unwind(AssertUnwindSafe(|| activator(self, name))),
            |_| Ok(true),
        );
        self.adapter.pending.lock().remove(name);
        drop(making);
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
        let root = Poa::new(client, Arc::clone(&orb), Arc::clone(root));
        let mut names = path.split('/');
        let found = names.try_fold(root, |adapter, name| adapter.find_or_activate(name));
        found.is_some()
    }
}

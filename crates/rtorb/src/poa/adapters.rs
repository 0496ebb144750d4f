//! The adapters of one ORB, and what they share.

use super::adapter::Adapter;
use super::admission::ServantAdmission;
use crate::dispatch::pool::{Lane, Pool};
use crate::dispatch::{Dispatch, Pools};
use crate::endpoint::Endpoint;
use crate::exception::{SystemException, local};
use crate::realtime::Priority;
use crate::server::{ObjectAdapter, Server, ServerCore};
use crate::transport::Listener;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The server, its dispatch strategy, its thread pools and its root adapter.
pub(crate) struct Adapters {
    pub(crate) server: Arc<ServerCore>,
    pub(crate) dispatch: Dispatch,
    /// The application's thread pools.
    pub(crate) pools: Pools,
    pub(crate) root: Arc<Adapter>,
    /// The admission of servants with times, if there is one.
    pub(super) admission: Option<Arc<dyn ServantAdmission>>,
    count: AtomicUsize,
}

impl Adapters {
    pub(crate) fn new(
        server: Arc<ServerCore>,
        dispatch: Dispatch,
        pools: Pools,
        admission: Option<Arc<dyn ServantAdmission>>,
    ) -> Arc<Self> {
        let client = Arc::clone(&server.client.core);
        let adapters = Arc::new_cyclic(|own| Self {
            server,
            dispatch,
            pools,
            root: Arc::new(Adapter::root(own.clone(), &client.interceptors)),
            admission,
            count: AtomicUsize::new(1),
        });
        let root = Arc::clone(&adapters.root) as Arc<dyn ObjectAdapter>;
        let server = &adapters.server;
        server.root.get_or_make(|| Arc::downgrade(&root));
        adapters
    }

    /// Opens the server: the ORB begins to listen.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint if one cannot be listened on; BAD_INV_ORDER 4 once the ORB is shut down.
    pub(crate) fn open_server(&self) -> Result<&Server, SystemException> {
        self.server.open(|| match &self.dispatch {
            Dispatch::Pool(own) => own.open(&self.server, &self.pools).map(|()| Vec::new()),
            Dispatch::ThreadPerConnection => self.pools.bind(&self.pools.listen),
        })
    }

    /// Makes all serving threads end, and does not wait for them.
    pub(crate) fn stop(&self) {
        self.server.stop();
        if let Some(pool) = self.own_pool() {
            pool.stop();
        }
        self.pools.stop();
    }

    /// Returns the pool of the dispatch strategy, if it has one and the ORB listens.
    pub(crate) fn own_pool(&self) -> Option<&Arc<Pool>> {
        match &self.dispatch {
            Dispatch::Pool(own) => own.pool(),
            Dispatch::ThreadPerConnection => None,
        }
    }

    /// Returns the listeners of adapters without a pool of their own.
    pub(crate) fn own_listeners(&self) -> Vec<&Listener> {
        let listeners = self.listeners(None).into_iter();
        listeners.map(|(listener, _)| listener).collect()
    }

    /// Returns the listeners of a pool, or of the ORB itself, with the priorities of the lanes that clients choose.
    pub(crate) fn listeners<'l>(
        &'l self,
        pool: Option<&'l Pool>,
    ) -> Vec<(&'l Listener, Option<Priority>)> {
        let pool = pool.or_else(|| self.own_pool().map(|own| &**own));
        match (pool, self.server.server()) {
            (Some(pool), _) => {
                let priority = |lane: &Lane| lane.priority.filter(|_| pool.config.has_lanes);
                let of_lane = |lane: &'l Lane| {
                    let listeners = lane.server.listeners.iter();
                    listeners.map(move |listener| (listener, priority(lane)))
                };
                pool.all_lanes().flat_map(of_lane).collect()
            }
            (None, Some(server)) => server.listeners.iter().map(|one| (one, None)).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// Returns true if the ORB listens at the endpoint with a thread for each connection: then no pool serves the objects.
    pub(crate) fn leads_to_no_pool(&self, endpoint: &Endpoint) -> bool {
        match (&self.dispatch, self.server.server()) {
            (Dispatch::ThreadPerConnection, Some(server)) => {
                let mut listeners = server.listeners.iter();
                listeners.any(|listener| listener.leads_to(endpoint))
            }
            _ => false,
        }
    }

    /// Counts one more adapter.
    ///
    /// # Errors
    /// NO_RESOURCES beyond `Limits::adapters_max`.
    pub(super) fn count_adapter(&self) -> Result<(), SystemException> {
        let max = self.server.limits.adapters_max;
        self.count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |adapters| {
                (adapters < max).then_some(adapters + 1)
            })
            .map(|_| ())
            .map_err(|_| local::ADAPTERS_FULL)
    }

    pub(super) fn uncount_adapter(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

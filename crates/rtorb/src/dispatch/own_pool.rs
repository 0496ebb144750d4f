//! The ORB's own pool, which serves the adapters that name none.
//!
//! The pool listens as soon as the ORB does, so that references can be made. Its threads begin when the ORB is run.

use super::pool::{self, Pool, PoolConfig};
use super::{
    DispatchError, FilterChain, Pools, await_connection, filter_chain, lanes, leader_followers,
    reactive, thread_per_request, worker_pool,
};
use crate::exception::SystemException;
use crate::realtime::ThreadpoolLane;
use crate::server::{Server, ServerCore, not_opened};
use rtorb_os::set_once::SetOnce;
use std::sync::Arc;

/// The structure of the ORB's own pool, and the pool once the ORB listens.
pub(crate) struct OwnPool {
    structure: Structure,
    pool: SetOnce<Arc<Pool>>,
}

/// The strategy that the pool follows, with what that strategy alone needs.
pub(crate) enum Structure {
    Reactive,
    WorkerPool { threads: u32 },
    LeaderFollowers { threads: u32 },
    FilterChain(Arc<FilterChain>),
    Lanes(Vec<ThreadpoolLane>),
    ThreadPerRequest,
}

impl OwnPool {
    pub(crate) fn new(structure: Structure) -> Self {
        Self {
            structure,
            pool: SetOnce::new(),
        }
    }

    /// The pool, once it is [open](Self::open).
    pub(crate) fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.get()
    }

    /// Opens the listening endpoints of all lanes. Callers exclude each other.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint if one cannot be listened on.
    pub(crate) fn open(&self, orb: &Arc<ServerCore>, pools: &Pools) -> Result<(), SystemException> {
        let config = self.config(orb);
        let listeners = pools.open_endpoints(&config)?;
        // The builder has refused lanes without a native priority on this host.
        let pool = Pool::open(orb, config, listeners).map_err(|errno| not_opened(None, errno))?;
        self.pool.get_or_make(|| pool);
        Ok(())
    }

    fn config(&self, orb: &ServerCore) -> PoolConfig {
        match &self.structure {
            Structure::Reactive => reactive::config(orb),
            Structure::WorkerPool { threads } => worker_pool::config(orb, *threads),
            Structure::LeaderFollowers { threads } => leader_followers::config(orb, *threads),
            Structure::FilterChain(chain) => filter_chain::config(orb, chain),
            Structure::Lanes(lanes) => lanes::config(orb, lanes),
            Structure::ThreadPerRequest => thread_per_request::config(orb),
        }
    }

    /// Serves until the ORB is stopped; the calling thread waits for the others to end.
    pub(super) fn run(
        &self,
        orb: &Arc<ServerCore>,
        server: &Server,
        ready: &mut dyn FnMut(),
    ) -> Result<(), DispatchError> {
        let Some(pool) = self.pool() else {
            return Ok(());
        };
        if matches!(self.structure, Structure::Reactive) {
            return Ok(pool::serve_here(orb, pool, ready)?);
        }
        pool::begin(orb, pool).inspect_err(|_| orb.stop())?;
        ready();
        let mut waited = Ok(());
        while waited.is_ok() && !orb.is_stopping() {
            waited = await_connection(server, None);
        }
        orb.stop();
        pool.stop();
        pool.join();
        Ok(waited?)
    }
}

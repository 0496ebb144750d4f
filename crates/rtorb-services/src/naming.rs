//! The naming service (CosNaming 1.3): names for references, in contexts, in a persistent store.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rtorb_services::naming::{NamingConfig, NamingService};
//!
//! let orb = rtorb::Orb::builder().args(std::env::args())?.build()?;
//! let naming = NamingService::serve(&orb, NamingConfig::stored_at("names.redb"))?;
//! println!("{}", naming.reference().as_object());
//! orb.root_poa()?.manager().activate();
//! orb.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! An acknowledged change is on the disk: it is committed before its reply is sent, and changes that come at the same time share
//! a commit. Names are resolved in memory, by a hash of context, id and kind, and never wait for the disk.

mod changes;
pub mod client;
mod config;
mod context;
#[cfg(test)]
mod disk_full;
mod draft;
mod error;
mod exception;
mod failure;
mod federation;
mod iterators;
#[cfg(test)]
mod model;
mod names;
mod servant;
mod store;
mod tree;

pub use config::NamingConfig;
pub use error::{NamingError, StoreError};
use failure::OrbWarnings;
pub use failure::{StoreFailure, StoreLog};

use crate::stubs::naming::cos_naming::NamingContextExt;
use changes::{Changes, Disk};
pub use context::NamingStatistics;
use context::{Naming, ROOT_KEY};
use rtorb::Orb;
use rtorb_os::sync::Mutex;
use std::sync::Arc;
use store::Store;
use tree::{ROOT, Tree};

/// A naming service that an ORB serves.
#[derive(Clone, Debug)]
pub struct NamingService {
    orb: Orb,
    naming: Arc<Naming>,
}

impl NamingService {
    /// Loads the store, if there is one, and serves its contexts. The root has the key `NameService` beside its own, so that
    /// `corbaloc::HOST:PORT/NameService` leads to it, and is the ORB's initial reference of that name.
    ///
    /// The manager of the ORB's root adapter lets requests in, as for every object. A store that fails later is a warning of the ORB
    /// ([`OrbBuilder::on_warning`](rtorb::OrbBuilder::on_warning)), and the clients whose changes it does not keep get PERSIST_STORE.
    ///
    /// # Errors
    /// [`NamingError`]: a configuration out of range, a store that cannot be used, an ORB that cannot serve.
    pub fn serve(orb: &Orb, config: NamingConfig) -> Result<Self, NamingError> {
        Self::serve_with(orb, config, Arc::new(OrbWarnings(orb.clone())))
    }

    /// Does the same as [`serve`](Self::serve), with another log for a store that fails.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub fn serve_with(
        orb: &Orb,
        config: NamingConfig,
        log: Arc<dyn StoreLog>,
    ) -> Result<Self, NamingError> {
        config.check()?;
        let stored = match &config.store {
            Some(place) => {
                let opened = Store::open(place, &config);
                let (store, tree) = opened.map_err(|why| NamingError::Store {
                    place: place.clone(),
                    why,
                })?;
                Some((store.logging_to(log), tree))
            }
            None => None,
        };
        Self::start(orb, config, stored)
    }

    /// Serves the contexts of an open store, or of none.
    fn start(
        orb: &Orb,
        config: NamingConfig,
        stored: Option<(Store, Tree)>,
    ) -> Result<Self, NamingError> {
        let (disk, tree, identity) = match stored {
            Some((store, tree)) => {
                let identity = store.identity();
                (Some(Box::new(store) as Box<dyn Disk>), tree, identity)
            }
            None => (None, Tree::new(config.bindings_max), store::new_identity()?),
        };
        let tree = Arc::new(Mutex::new(tree));
        let changes = Changes::new(Arc::clone(&tree), disk, &config);
        let naming = Naming::new(orb, identity, tree, changes, config)?;
        servant::open(&naming)?;
        let service = Self {
            orb: orb.clone(),
            naming,
        };
        orb.bind_object_key(ROOT_KEY, service.reference().as_object())
            .inspect_err(|_| {
                service.naming.end();
            })?;
        orb.register_initial_reference(ROOT_KEY, service.reference().as_object().clone());
        Ok(service)
    }

    /// The root context.
    pub fn reference(&self) -> NamingContextExt {
        self.naming.reference(ROOT)
    }

    /// Its counts.
    pub fn statistics(&self) -> NamingStatistics {
        self.naming.statistics()
    }

    /// Ends the service with its contexts and iterators. When calls in progress have ended, another service can open the store.
    /// The store keeps all names.
    pub fn end(&self) {
        if self.naming.end() {
            self.orb.unbind_object_key(ROOT_KEY);
        }
    }
}

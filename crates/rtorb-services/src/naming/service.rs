//! A naming service that an ORB serves.

use super::bootstrap::Bootstrap;
use super::changes::{Changes, Storage};
use super::config::NamingConfig;
use super::context::{Naming, NamingStatistics, ROOT_KEY};
use super::error::NamingError;
use super::replica::Replica;
use super::servant;
use super::shared_store::SharedStore;
use super::store::{self, Store};
use super::store_log::{OrbWarnings, StoreLog};
use super::tree::{ROOT, Tree};
use crate::stubs::naming::cos_naming::NamingContextExt;
use rtorb::Orb;
use rtorb_os::sync::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

/// A naming service that an ORB serves.
#[derive(Clone, Debug)]
pub struct NamingService {
    orb: Orb,
    naming: Arc<Naming>,
}

impl NamingService {
    /// Loads the store, if there is one, and serves its contexts. The root has the key `NameService` beside its own, so that
    /// `corbaloc::HOST:PORT/NameService` leads to it, and is the ORB's initial reference of that name. An object with the key `INIT`
    /// leads clients of the JDK's ORB to it, whose `-ORBInitialHost` and `-ORBInitialPort` tell them the host and the port only.
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
        // It listens: where it cannot, no store is made.
        orb.root_poa()?;
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

    /// Loads a store that several naming services share, and serves its contexts as [`serve`](Self::serve) does; `config.store` is not
    /// used. The services serve the same contexts: their references differ only in their endpoints. Each service sees the changes of
    /// the others as soon as the store tells it of them. While the store does not answer, names are resolved as they were, and
    /// clients whose changes cannot be made get TRANSIENT. Give all of them the same bounds.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub fn serve_shared(
        orb: &Orb,
        config: NamingConfig,
        store: Arc<dyn SharedStore>,
    ) -> Result<Self, NamingError> {
        config.check()?;
        orb.root_poa()?;
        let place = PathBuf::from(store.place());
        let log = Arc::new(OrbWarnings(orb.clone()));
        let opened = Replica::open(store, &config, log);
        let (replica, tree) = opened.map_err(|why| NamingError::Store { place, why })?;
        let identity = replica.identity();
        Self::start_on(orb, config, Storage::Shared(replica), tree, identity)
    }

    /// Serves the contexts of an open store, or of none.
    pub(super) fn start(
        orb: &Orb,
        config: NamingConfig,
        stored: Option<(Store, Tree)>,
    ) -> Result<Self, NamingError> {
        let (storage, tree, identity) = match stored {
            Some((store, tree)) => {
                let identity = store.identity();
                (Storage::Disk(Arc::new(store)), tree, identity)
            }
            None => {
                let tree = Tree::new(config.bindings_max);
                (Storage::Memory, tree, store::new_identity()?)
            }
        };
        Self::start_on(orb, config, storage, Arc::new(Mutex::new(tree)), identity)
    }

    fn start_on(
        orb: &Orb,
        config: NamingConfig,
        storage: Storage,
        tree: Arc<Mutex<Tree>>,
        identity: u64,
    ) -> Result<Self, NamingError> {
        let changes = Changes::new(Arc::clone(&tree), storage, &config);
        let naming = Naming::new(orb, identity, tree, changes, config)?;
        let service = Self {
            orb: orb.clone(),
            naming,
        };
        service.open().inspect_err(|_| {
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

    /// Serves contexts, gives the root context its own key, and serves the object that leads to it.
    fn open(&self) -> Result<(), NamingError> {
        servant::open(&self.naming)?;
        let root = self.reference().as_object().clone();
        self.orb.bind_object_key(ROOT_KEY, &root)?;
        let bootstrap = Bootstrap::serve(&self.orb, root).inspect_err(|_| {
            self.orb.unbind_object_key(ROOT_KEY);
        })?;
        *self.naming.bootstrap.lock() = Some(bootstrap);
        Ok(())
    }
}

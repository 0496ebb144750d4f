//! A naming service of this process on etcd, and what clients do with it.

use rtorb::{Collocation, ObjectRef, Orb};
use rtorb_etcd::EtcdStore;
use rtorb_services::naming::client::{Name, parse_name};
use rtorb_services::naming::{NamingConfig, NamingService};
use rtorb_services::stubs::naming::cos_naming::NamingContextExt;
use rtorb_tests::ours::absent_object;
use rtorb_tests::server_process::lasting_port;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A service that runs until it is dropped, with a client ORB beside it.
pub(crate) struct Serving {
    pub(crate) service: NamingService,
    /// The root, as a client has it.
    pub(crate) root: NamingContextExt,
    pub(crate) client: Orb,
    /// What the service has warned of.
    pub(crate) warnings: Arc<Mutex<Vec<String>>>,
    orb: Orb,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(crate) fn start(url: &str) -> Self {
        Self::at(&format!("iiop://127.0.0.1:{}", lasting_port()), url)
    }

    pub(crate) fn at(endpoint: &str, url: &str) -> Self {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&warnings);
        let orb = Orb::builder()
            .listen(endpoint)
            .collocation(Collocation::Transport)
            .on_warning(move |warning| heard.lock().expect("no panic").push(warning.to_string()))
            .build()
            .expect("an ORB");
        let store = Arc::new(EtcdStore::open(url).expect("a store"));
        let config = NamingConfig {
            bindings_max: 10_000,
            ..NamingConfig::default()
        };
        let service = NamingService::serve_shared(&orb, config, store).expect("a service");
        orb.root_poa().expect("a root adapter").manager().activate();
        let running = orb.clone();
        let thread = std::thread::spawn(move || running.run().expect("an ORB that runs"));
        let client = Orb::builder().build().expect("a client");
        let text = service.reference().as_object().to_string();
        let root = client.string_to_object(&text).expect("a reference");
        Self {
            service,
            root: NamingContextExt::unchecked_narrow(root),
            client,
            warnings,
            orb,
            thread: Some(thread),
        }
    }

    pub(crate) fn object(&self, key: &str) -> ObjectRef {
        absent_object(&self.client, key)
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.root.resolve(&name(text)).is_ok()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.service.end();
        self.orb.shutdown();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("an ORB that ended");
        }
    }
}

/// A name out of its text.
pub(crate) fn name(text: &str) -> Name {
    parse_name(text).expect(text)
}

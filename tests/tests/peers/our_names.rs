//! A naming service of ours in this process, and naming contexts as its clients hold them.

use std::thread::{self, JoinHandle};

use rtorb::endpoint::Endpoint;
use rtorb::{ObjectRef, Orb};
use rtorb_services::naming::client::{Context, Name, parse_name};
use rtorb_services::naming::{NamingConfig, NamingService};

/// A naming service of ours; dropped, it is shut down and its thread has ended.
#[derive(Debug)]
pub(super) struct OurNames {
    /// Its ORB.
    pub(super) orb: Orb,
    _service: NamingService,
    running: Option<JoinHandle<()>>,
}

impl OurNames {
    /// Serves names on a free port of loopback, in memory alone.
    ///
    /// # Panics
    ///
    /// It cannot.
    pub(super) fn serve() -> Self {
        let orb = Orb::builder().build().expect("the ORB can be built");
        let service = NamingService::serve(&orb, NamingConfig::default()).expect("names");
        let poa = orb.root_poa().expect("the ORB can listen");
        poa.manager().activate();
        let server = orb.clone();
        let running = thread::spawn(move || server.run().expect("the ORB runs"));
        Self {
            orb,
            _service: service,
            running: Some(running),
        }
    }

    /// Where it is, as `host:port`.
    ///
    /// # Panics
    ///
    /// It listens on no port.
    pub(super) fn address(&self) -> String {
        let endpoints = self.orb.endpoints();
        let tcp = endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port } => Some(format!("{host}:{port}")),
            _ => None,
        });
        tcp.expect("the server listens on loopback")
    }
}

impl Drop for OurNames {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

/// The root context of the naming service at `host:port`, found as everybody finds it.
///
/// # Panics
///
/// There is none.
pub(super) fn root(orb: &Orb, address: &str) -> Context {
    Context::narrow(&object(
        orb,
        &format!("corbaloc::1.2@{address}/NameService"),
    ))
    .expect("a naming context")
}

/// The object that a text means.
///
/// # Panics
///
/// It means none.
pub(super) fn object(orb: &Orb, text: &str) -> ObjectRef {
    orb.string_to_object(text)
        .unwrap_or_else(|exception| panic!("{text}: {exception}"))
}

/// A name out of its text.
///
/// # Panics
///
/// It is none.
pub(super) fn name(text: &str) -> Name {
    parse_name(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

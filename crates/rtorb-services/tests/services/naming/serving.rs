//! A naming service in this process, and a client of it.

use rtorb::endpoint::Endpoint;
use rtorb::{Collocation, ObjectRef, Orb};
use rtorb_services::naming::client::{Name, parse_name};
use rtorb_services::naming::{NamingConfig, NamingService};
use rtorb_services::stubs::naming::cos_naming::{BindingType, NamingContext, NamingContextExt};
use rtorb_tests::ours::absent_object;
use std::thread::JoinHandle;

/// A service that runs until it is dropped, with a client ORB beside it.
pub(crate) struct Serving {
    pub(crate) service: NamingService,
    /// The root, as a client has it.
    pub(crate) root: NamingContextExt,
    pub(crate) client: Orb,
    pub(crate) orb: Orb,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// On a port of its own.
    pub(crate) fn new(config: NamingConfig) -> Self {
        Self::at("iiop://127.0.0.1:0", config)
    }

    pub(crate) fn at(endpoint: &str, config: NamingConfig) -> Self {
        let orb = Orb::builder()
            .listen(endpoint)
            .collocation(Collocation::Transport)
            .build()
            .expect("an ORB");
        let service = NamingService::serve(&orb, config).expect("a naming service");
        orb.root_poa().expect("a root adapter").manager().activate();
        let running = orb.clone();
        let thread = std::thread::spawn(move || running.run().expect("an ORB that runs"));
        let client = Orb::builder().build().expect("a client");
        let object = client
            .string_to_object(&service.reference().as_object().to_string())
            .expect("a reference");
        Self {
            service,
            root: NamingContextExt::unchecked_narrow(object),
            client,
            orb,
            thread: Some(thread),
        }
    }

    /// A reference to something, which need not be there.
    pub(crate) fn object(&self, key: &str) -> ObjectRef {
        absent_object(&self.client, key)
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        match self.orb.endpoints().first() {
            Some(Endpoint::Tcp { port, .. }) => *port,
            other => panic!("{other:?}"),
        }
    }

    /// The root of another service, as this one's client has it.
    pub(crate) fn known(&self, other: &Self) -> NamingContext {
        let object = self
            .client
            .string_to_object(&other.root.as_object().to_string())
            .expect("a reference");
        NamingContext::unchecked_narrow(object)
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

/// All that names of one and two components lead to, a line each, in order of the names.
pub(crate) fn contents(root: &NamingContextExt) -> String {
    let mut lines = Vec::new();
    for outer in root.list(1000).expect("a list").0 {
        let at = outer.binding_name;
        let bound = root.resolve(&at).expect("bound").expect("a reference");
        lines.push(format!("{at:?} {bound}"));
        if outer.binding_type == BindingType::Ncontext {
            let context = NamingContext::unchecked_narrow(bound);
            // A context that is gone, or not there, has nothing.
            for inner in context
                .list(1000)
                .map(|listed| listed.0)
                .unwrap_or_default()
            {
                let bound = context.resolve(&inner.binding_name).expect("bound");
                lines.push(format!("{at:?} {:?} {bound:?}", inner.binding_name));
            }
        }
    }
    lines.sort();
    lines.join("\n")
}

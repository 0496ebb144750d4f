//! Two ORBs in one process that call each other over a real connection.

use std::thread::JoinHandle;

use rtorb::cdr::ByteOrder;
use rtorb::skeleton::ServedBy;
use rtorb::{Collocation, ExceptionKind, ObjectRef, Orb, OrbBuilder, OrbError};

/// A client and a server. Both serve requests, so that the server can call the client back.
pub(crate) struct Pair {
    client: Running,
    server: Running,
}

impl Pair {
    /// A pair over TCP in the byte order of this machine.
    pub(crate) fn new() -> Self {
        Self::of(|builder| builder)
    }

    /// Pairs with both byte orders, with whole and with fragmented messages. The mapping must not depend on them.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        let foreign = if ByteOrder::NATIVE == ByteOrder::Big {
            ByteOrder::Little
        } else {
            ByteOrder::Big
        };
        let choices: [fn(OrbBuilder, ByteOrder) -> OrbBuilder; 3] = [
            |builder, _| builder,
            |builder, foreign| builder.byte_order(foreign),
            |builder, _| builder.fragment_bytes(64),
        ];
        choices
            .into_iter()
            .map(move |choose| Self::of(|builder| choose(builder, foreign)))
    }

    fn of(choose: impl Fn(OrbBuilder) -> OrbBuilder) -> Self {
        Self {
            client: Running::new(choose(by_transport())),
            server: Running::new(choose(by_transport())),
        }
    }

    /// Activates a servant in the server, and returns the client's reference to it.
    pub(crate) fn serve<I: ServedBy<S, Object = ObjectRef> + 'static, S: Send + Sync + 'static>(
        &self,
        servant: S,
    ) -> I {
        let object: I = self.server.activate(servant);
        let reference = self.server.orb.object_to_string(object.as_object());
        let object = self
            .client
            .orb
            .string_to_object(&reference)
            .expect("the server made the reference");
        I::unchecked_narrow(object)
    }

    /// Activates a servant in the client, for the server to call back.
    pub(crate) fn serve_at_client<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        servant: S,
    ) -> I {
        self.client.activate(servant)
    }
}

/// Every call goes over a connection, also one of an ORB's own object.
fn by_transport() -> OrbBuilder {
    Orb::builder().collocation(Collocation::Transport)
}

/// An ORB with a thread that serves requests until the ORB is dropped.
struct Running {
    orb: Orb,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn new(builder: OrbBuilder) -> Self {
        let orb = builder.build().expect("a loopback port can be had");
        let served = orb.clone();
        let thread = std::thread::spawn(move || match served.run() {
            Ok(()) => {}
            // The ORB was shut down before the thread started.
            Err(OrbError::System(exception)) if exception.kind == ExceptionKind::BadInvOrder => {}
            Err(error) => panic!("a loopback port can be listened on: {error}"),
        });
        Self {
            orb,
            thread: Some(thread),
        }
    }

    fn activate<I: ServedBy<S, Object = ObjectRef> + 'static, S: Send + Sync + 'static>(
        &self,
        servant: S,
    ) -> I {
        let adapter = self
            .orb
            .root_poa()
            .expect("a loopback port can be listened on");
        adapter
            .activate(servant)
            .expect("the root adapter takes any servant")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the server thread panicked");
        }
    }
}

//! A server that does what a test tells it to, and nothing right unless told so.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use rtorb_wire::giop::Version;
use rtorb_wire::ior::{Component, IiopProfile, Ior};

use crate::raw::{REPLY, Stream};
use crate::recorder::message;

/// A listening socket whose connections are handled by a test's closure, each in a thread of its own.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
}

impl FakeServer {
    /// Listens on a free port of loopback; `serve` gets the number of the connection, from 0, and the connection.
    ///
    /// # Panics
    ///
    /// Loopback has no free port.
    pub fn new(serve: impl Fn(usize, Peer) + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        thread::spawn(move || {
            for (number, socket) in listener.incoming().flatten().enumerate() {
                let serve = serve.clone();
                thread::spawn(move || serve(number, Peer { socket }));
            }
        });
        Self { address }
    }

    /// A reference to an object of this server, which has no code sets.
    #[must_use]
    pub fn reference(&self) -> String {
        reference_at(&self.address.ip().to_string(), self.address.port())
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where it listens, as an exception names it.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("iiop://{}", self.address)
    }
}

/// The client at the other end.
#[derive(Debug)]
pub struct Peer {
    socket: TcpStream,
}

/// The kind of a message by which a client gives up a request.
const CANCEL_REQUEST: u8 = 2;

impl Peer {
    /// The id of the next request, or none when the client is gone. Requests are read in GIOP 1.2, little-endian. What the client says
    /// of requests that it gives up is left out.
    pub fn request(&mut self) -> Option<u32> {
        loop {
            let message = self.message()?;
            if message.get(7) != Some(&CANCEL_REQUEST) {
                return request_id(&message);
            }
        }
    }

    /// The next message, or none when the client is gone.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        message(&mut self.socket).ok()
    }

    /// Waits until the client has sent something or is gone, and reads nothing.
    pub fn await_bytes(&mut self) {
        let _ = self.socket.peek(&mut [0]);
    }

    /// Sends octets; a client that is gone needs none.
    pub fn send(&mut self, octets: &[u8]) {
        use std::io::Write;
        let _ = self.socket.write_all(octets);
    }

    /// Waits until the client is gone.
    pub fn wait_for_end(&mut self) {
        while self.request().is_some() {}
    }
}

/// The id of a request in GIOP 1.2, little-endian.
#[must_use]
pub fn request_id(message: &[u8]) -> Option<u32> {
    message.get(12..16)?.try_into().ok().map(u32::from_le_bytes)
}

/// A reference to an object of an unknown type at a host and port, GIOP 1.2, of a server that has no code sets.
///
/// # Panics
///
/// The host is no text that a reference can hold.
#[must_use]
pub fn reference_at(host: &str, port: u16) -> String {
    // Without any component it could be that of a URL, to whose server a client names code sets.
    let orb_type = Component::OrbType(0).to_tagged().expect("a number");
    let profile = IiopProfile {
        version: Version::V1_2,
        host: host.to_owned(),
        port,
        object_key: b"object".to_vec(),
        components: vec![orb_type],
    };
    let profile = profile.to_tagged().expect("a host name is text");
    Ior {
        type_id: String::new(),
        profiles: vec![profile],
    }
    .to_string()
}

/// A reply in GIOP 1.2, little-endian: its status, and what `body` writes at a multiple of 8.
pub fn reply(id: u32, status: u32, body: impl FnOnce(&mut Stream)) -> Vec<u8> {
    let mut stream = Stream::new(REPLY, 2, false);
    stream.ulong(id).ulong(status).ulong(0);
    body(&mut stream);
    stream.message()
}

/// The reply to `_is_a` that says yes.
#[must_use]
pub fn yes(id: u32) -> Vec<u8> {
    reply(id, 0, |body| {
        body.raw(&[1]);
    })
}

//! Both ends of a link: sockets, and clients behind a lock.

use rtorb_embedded::{Client, Link, LinkError, SharedClient};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;

/// Octets of the largest message.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// A socket with a timeout, as a link.
pub(super) struct Socket<S>(pub(super) S);

impl<S: Read + Write> Link for Socket<S> {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.0.write_all(octets).map_err(|_| LinkError::Broken)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        self.0.read(into).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => LinkError::TimedOut,
            _ => LinkError::Broken,
        })
    }
}

/// The ends of a link that gives up after ten seconds.
pub(super) fn pair() -> (UnixStream, Socket<UnixStream>) {
    let (here, there) = UnixStream::pair().expect("the host has sockets");
    for end in [&here, &there] {
        let timeout = Some(Duration::from_secs(10));
        end.set_read_timeout(timeout).expect("it is not zero");
    }
    (here, Socket(there))
}

/// A client behind the standard library's mutex.
struct Locked(Mutex<Client>);

impl SharedClient for Locked {
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client)) {
        call(&mut self.0.lock().expect("no call panicked"));
    }
}

/// A client at that end of a link, for as long as the tests run.
pub(super) fn client(stream: impl Read + Write + Send + 'static) -> &'static dyn SharedClient {
    client_of(Socket(stream))
}

/// A client of that link, for as long as the tests run.
pub(super) fn client_of(link: impl Link + Send + 'static) -> &'static dyn SharedClient {
    let client = Client::new(Box::new(link), MESSAGE_BYTES_MAX);
    Box::leak(Box::new(Locked(Mutex::new(client))))
}

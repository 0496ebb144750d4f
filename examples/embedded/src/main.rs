//! Serves the Cubit on a TCP port, one client at a time, until a client calls `shutdown`: `embedded-cubit PORT`.
#![forbid(unsafe_code)]

use rtorb_embedded::{FixedPriority, Link, LinkError, Object, Server, Tie};
use rtorb_embedded_cubit::cubit::Cubit;
use rtorb_embedded_cubit::servant::{Cuber, KEY};
use std::io::{self, Read, Write, stdout};
use std::net::{TcpListener, TcpStream};

/// More than any message of this example has: sequences of 4,096 structs.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

fn main() -> io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .and_then(|port| port.parse().ok())
        .unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    writeln!(stdout(), "corbaloc:iiop:{}/cubit", listener.local_addr()?)?;
    let cubit = Tie::<Cubit, _>::new(Cuber::new());
    let objects = [Object {
        key: KEY,
        servant: &cubit,
    }];
    let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
    while !cubit.servant().is_shut_down() {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut link = Stream(stream);
        while !cubit.servant().is_shut_down()
            && server.serve_next(&mut link, &mut FixedPriority).is_ok()
        {}
    }
    Ok(())
}

/// A TCP connection as a link.
struct Stream(TcpStream);

impl Link for Stream {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.0.write_all(octets).map_err(|_| LinkError::Broken)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        self.0.read(into).map_err(|_| LinkError::Broken)
    }
}

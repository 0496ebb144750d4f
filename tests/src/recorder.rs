//! Stands between a client and a server, passes every octet on, and keeps the GIOP messages of both.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The side that connected.
    Client,
    /// The side that was connected to.
    Server,
}

/// One message as it passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The connection, counted from 0.
    pub connection: usize,
    /// Who sent it.
    pub sender: Sender,
    /// All of it, the GIOP header included.
    pub octets: Vec<u8>,
}

/// A recorder of the connections to one server.
#[derive(Debug)]
pub struct Recorder {
    address: SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Recorder {
    /// Listens on a free port of loopback for clients of the server at `target`.
    ///
    /// # Panics
    ///
    /// Loopback has no free port.
    #[must_use]
    pub fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let messages = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&messages);
        thread::spawn(move || {
            for (connection, client) in listener.incoming().flatten().enumerate() {
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                pass((&client, &server), (connection, Sender::Client), &kept);
                pass((&server, &client), (connection, Sender::Server), &kept);
            }
        });
        Self { address, messages }
    }

    /// Where clients shall connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has passed up to now, in the order of arrival.
    ///
    /// # Panics
    ///
    /// A recording thread has panicked.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.messages
            .lock()
            .expect("a recording thread has panicked")
            .clone()
    }
}

fn pass(
    (from, to): (&TcpStream, &TcpStream),
    (connection, sender): (usize, Sender),
    kept: &Arc<Mutex<Vec<Message>>>,
) {
    let copies = from
        .try_clone()
        .and_then(|from| Ok((from, to.try_clone()?)));
    let (mut from, mut to) = copies.expect("a socket can be shared");
    let kept = Arc::clone(kept);
    thread::spawn(move || {
        while let Ok(octets) = message(&mut from) {
            kept.lock()
                .expect("a recording thread has panicked")
                .push(Message {
                    connection,
                    sender,
                    octets: octets.clone(),
                });
            if to.write_all(&octets).is_err() {
                break;
            }
        }
        // The end of one direction is the end of the conversation for GIOP.
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Reads one GIOP message, of whatever kind and version.
///
/// # Errors
///
/// The connection ends, or what comes is not GIOP.
pub fn message(from: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut octets = vec![0; 12];
    from.read_exact(&mut octets)?;
    if &octets[..4] != b"GIOP" {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let size = [octets[8], octets[9], octets[10], octets[11]];
    let size = if octets[6] & 1 == 1 {
        u32::from_le_bytes(size)
    } else {
        u32::from_be_bytes(size)
    };
    let size = usize::try_from(size).map_err(|_| std::io::ErrorKind::InvalidData)?;
    octets.resize(12 + size, 0);
    from.read_exact(&mut octets[12..])?;
    Ok(octets)
}

//! The raw exchange over TCP, without Nagle's delay.

use std::io;
use std::net::{TcpListener, TcpStream};

use super::{StreamClient, serve_stream};

/// Listens on `address`, tells it with its port by `ready`, and serves the one client that comes.
///
/// # Errors
/// What the system said.
pub fn serve(address: &str, ready: impl FnOnce(&str)) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    ready(&listener.local_addr()?.to_string());
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    serve_stream(&mut stream)
}

/// Connects to an address that [`serve`] told.
///
/// # Errors
/// What the system said.
pub fn connect(address: &str) -> io::Result<StreamClient<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(StreamClient::new(stream))
}

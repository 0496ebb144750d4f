//! The raw exchange over a UNIX stream socket.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::{StreamClient, serve_stream};

/// Listens at a path, which must be free, and serves the one client that comes.
///
/// # Errors
/// What the system said.
pub fn serve(path: &Path, ready: impl FnOnce(&str)) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    ready(&path.display().to_string());
    let (mut stream, _) = listener.accept()?;
    serve_stream(&mut stream)
}

/// Connects to a path that [`serve`] listens at.
///
/// # Errors
/// What the system said.
pub fn connect(path: &Path) -> io::Result<StreamClient<UnixStream>> {
    Ok(StreamClient::new(UnixStream::connect(path)?))
}

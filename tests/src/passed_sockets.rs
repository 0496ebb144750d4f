//! Programs that are started with listening sockets, as a service manager starts them (sd_listen_fds(3)).

use crate::running::PATIENCE;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

/// Returns a command that runs `program` with one or two named sockets as its descriptors from 3 on. Its input is empty. The standard error
/// of a program with two sockets goes to its standard output. The test keeps the command no longer than until it is started: the command has
/// the sockets, too.
///
/// # Panics
///
/// There are more sockets, or none.
#[must_use]
pub fn command_with_sockets(
    program: impl AsRef<OsStr>,
    sockets: Vec<(&'static str, OwnedFd)>,
) -> Command {
    let (names, sockets): (Vec<_>, Vec<_>) = sockets.into_iter().unzip();
    let mut command = Command::new("sh");
    command.env("LISTEN_FDS", names.len().to_string());
    command.env("LISTEN_FDNAMES", names.join(":"));
    let sockets: Vec<Stdio> = sockets.into_iter().map(Stdio::from).collect();
    // The shell is the process that the program becomes, and it moves the sockets to their places.
    let moves = match <[Stdio; 1]>::try_from(sockets) {
        Ok([first]) => {
            command.stdin(first);
            "3<&0 </dev/null"
        }
        Err(sockets) => {
            let [first, second] = <[Stdio; 2]>::try_from(sockets).expect("two sockets");
            command.stdin(first).stderr(second);
            "3<&0 4<&2 </dev/null 2>&1"
        }
    };
    let script = format!(r#"export LISTEN_PID=$$; exec "$@" {moves}"#);
    command.args(["-c", &script, "sh"]).arg(program);
    command
}

/// Waits until a client has connected to a listening socket and nobody has accepted it.
///
/// # Panics
///
/// There is none within [`PATIENCE`].
pub fn until_a_client_waits(socket: impl AsFd) {
    let mut interest = [PollFd::new(&socket, PollFlags::IN)];
    let timeout = Timespec::try_from(PATIENCE).expect("it is short");
    let ready = poll(&mut interest, Some(&timeout)).expect("it is a socket");
    assert_eq!(ready, 1, "no client in {PATIENCE:?}");
}

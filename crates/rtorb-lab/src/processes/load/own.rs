//! The load that this program makes itself, in a child: `load hog|disk|network FOLDER SECONDS`, and `load exec PROGRAM ...`.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_os::thread::{ThreadConfig, spawn};

use super::{FILE_BYTES, HOGS, Kind, WRITE_BYTES};
use crate::processes::child::exec_tool;

/// Plays the role; returns when the time is over, or with what went wrong.
///
/// # Errors
/// What the system refused.
pub(crate) fn play(role: &[&str]) -> io::Result<()> {
    lower_priority()?;
    match role {
        ["exec", program, arguments @ ..] => Err(exec_tool(program, arguments)),
        [kind, folder, seconds] => {
            let kind = Kind::ALL.into_iter().find(|known| known.name() == *kind);
            let kind = kind.ok_or_else(|| io::Error::other("no such load"))?;
            let seconds: u64 = seconds.parse().map_err(io::Error::other)?;
            make(kind, Path::new(folder), Duration::from_secs(seconds))
        }
        _ => Err(io::Error::other("a load has KIND FOLDER SECONDS")),
    }
}

/// Whatever the laboratory itself runs with.
fn lower_priority() -> io::Result<()> {
    apply_policy(SchedPolicy::Other).map_err(io::Error::other)?;
    rustix::process::nice(NICE)?;
    Ok(())
}

fn make(kind: Kind, folder: &Path, at_most: Duration) -> io::Result<()> {
    match kind {
        Kind::Hog => (0..HOGS).try_for_each(|_| run("hog", compute))?,
        Kind::Disk => {
            let folder = PathBuf::from(folder);
            run("disk", move || write_files(&folder))?;
        }
        Kind::Network => {
            let (sender, receiver) = stream()?;
            run("tcp-sender", || send(sender))?;
            run("tcp-receiver", || receive(receiver))?;
            let (sender, receiver) = datagrams()?;
            run("udp-sender", move || send_datagrams(&sender))?;
            run("udp-receiver", move || receive_datagrams(&receiver))?;
        }
    }
    std::thread::sleep(at_most);
    Ok(())
}

/// Work that never ends by itself, on a thread of its own; the process ends when it fails, and with the main thread.
fn run(
    name: &'static str,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let until_it_fails = move || {
        let what = work()
            .err()
            .map_or_else(|| "ended".to_owned(), |error| error.to_string());
        // The laboratory may be gone, and then nobody wants to hear it.
        let _ = writeln!(io::stdout(), "error {name}: {what}");
        std::process::exit(1);
    };
    spawn(name, &ThreadConfig::default(), until_it_fails)
        .map(drop)
        .map_err(io::Error::other)
}

fn compute() -> io::Result<()> {
    let mut number = 1u64;
    loop {
        number = black_box(number.wrapping_mul(MULTIPLIER).wrapping_add(1));
    }
}

/// Each file has no name from the beginning, so that nothing stays when this process is killed.
fn write_files(folder: &Path) -> io::Result<()> {
    // Not all the same, which a file system might store without writing it.
    let mut number = 1u64;
    let octets: Vec<u8> = std::iter::repeat_with(|| {
        number = number.wrapping_mul(MULTIPLIER).wrapping_add(1);
        number.to_be_bytes()[0]
    })
    .take(WRITE_BYTES)
    .collect();
    loop {
        let mut file = tempfile::tempfile_in(folder)?;
        for _ in 0..FILE_BYTES / WRITE_BYTES as u64 {
            file.write_all(&octets)?;
            file.sync_data()?;
        }
    }
}

fn stream() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let sender = TcpStream::connect(listener.local_addr()?)?;
    let (receiver, _) = listener.accept()?;
    Ok((sender, receiver))
}

fn send(mut stream: TcpStream) -> io::Result<()> {
    let octets = vec![0x5a; WRITE_BYTES];
    loop {
        stream.write_all(&octets)?;
    }
}

fn receive(mut stream: TcpStream) -> io::Result<()> {
    let mut octets = vec![0; WRITE_BYTES];
    while stream.read(&mut octets)? > 0 {}
    Ok(())
}

fn datagrams() -> io::Result<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    Ok((sender, receiver))
}

fn send_datagrams(socket: &UdpSocket) -> io::Result<()> {
    let octets = [0x5a; DATAGRAM_BYTES];
    loop {
        socket.send(&octets)?;
    }
}

fn receive_datagrams(socket: &UdpSocket) -> io::Result<()> {
    let mut octets = [0; DATAGRAM_BYTES];
    loop {
        socket.recv(&mut octets)?;
    }
}

/// The lowest there is.
const NICE: i32 = 19;
/// What fits into a frame of Ethernet.
const DATAGRAM_BYTES: usize = 1_400;
/// Of Knuth's linear congruential generator, MMIX.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_received() {
        let (mut sender, mut receiver) = stream().unwrap();
        sender.write_all(b"flood").unwrap();
        let mut five = [0; 5];
        receiver.read_exact(&mut five).unwrap();
        assert_eq!(&five, b"flood");
        let (sender, receiver) = datagrams().unwrap();
        sender.send(b"one").unwrap();
        assert_eq!(receiver.recv(&mut five).unwrap(), 3);
    }
}

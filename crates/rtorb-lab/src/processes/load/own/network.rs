//! Loads on sockets: `network`, `tcp`, `udp` and `unix`.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use super::workers::{Begun, Workers};
use crate::processes::load::{UNIX_PAIRS, WRITE_BYTES};

/// One thread sends, another receives, both as fast as they can.
pub(super) fn stream(workers: &mut Workers) -> io::Result<()> {
    let (sender, receiver) = connected()?;
    workers.start("tcp-sender", |begun| send(sender, begun))?;
    workers.start("tcp-receiver", |begun| receive(receiver, begun))
}

/// The same with datagrams of so many octets, at most [`FRAME_BYTES`].
pub(super) fn datagrams(workers: &mut Workers, bytes: usize) -> io::Result<()> {
    let (sender, receiver) = bound()?;
    workers.start("udp-sender", move |begun| {
        send_datagrams(&sender, bytes, begun)
    })?;
    workers.start("udp-receiver", move |begun| {
        receive_datagrams(&receiver, begun)
    })
}

/// Pairs of threads: one asks, the other answers.
pub(super) fn ping_pong(workers: &mut Workers) -> io::Result<()> {
    for _ in 0..UNIX_PAIRS {
        let (asks, answers) = UnixStream::pair()?;
        workers.start("ping", move |begun| {
            exchange(asks, &[0x5a; MESSAGE_BYTES], begun)
        })?;
        workers.start("pong", move |begun| exchange(answers, &[], begun))?;
    }
    Ok(())
}

fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let sender = TcpStream::connect(listener.local_addr()?)?;
    let (receiver, _) = listener.accept()?;
    Ok((sender, receiver))
}

fn send(mut stream: TcpStream, mut begun: Begun) -> io::Result<()> {
    let octets = vec![0x5a; WRITE_BYTES];
    loop {
        stream.write_all(&octets)?;
        begun.done_something()?;
    }
}

fn receive(mut stream: TcpStream, mut begun: Begun) -> io::Result<()> {
    let mut octets = vec![0; WRITE_BYTES];
    while stream.read(&mut octets)? > 0 {
        begun.done_something()?;
    }
    Ok(())
}

fn bound() -> io::Result<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    Ok((sender, receiver))
}

fn send_datagrams(socket: &UdpSocket, bytes: usize, mut begun: Begun) -> io::Result<()> {
    let octets = [0x5a; FRAME_BYTES];
    loop {
        socket.send(&octets[..bytes])?;
        begun.done_something()?;
    }
}

fn receive_datagrams(socket: &UdpSocket, mut begun: Begun) -> io::Result<()> {
    let mut octets = [0; FRAME_BYTES];
    loop {
        socket.recv(&mut octets)?;
        begun.done_something()?;
    }
}

/// Says `first`, then sends back whatever comes.
fn exchange(mut socket: UnixStream, first: &[u8], mut begun: Begun) -> io::Result<()> {
    socket.write_all(first)?;
    let mut message = [0; MESSAGE_BYTES];
    loop {
        socket.read_exact(&mut message)?;
        socket.write_all(&message)?;
        begun.done_something()?;
    }
}

/// What fits into a frame of Ethernet.
pub(super) const FRAME_BYTES: usize = 1_400;
const MESSAGE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_received() {
        let (mut sender, mut receiver) = connected().unwrap();
        sender.write_all(b"flood").unwrap();
        let mut five = [0; 5];
        receiver.read_exact(&mut five).unwrap();
        assert_eq!(&five, b"flood");
        let (sender, receiver) = bound().unwrap();
        sender.send(b"one").unwrap();
        assert_eq!(receiver.recv(&mut five).unwrap(), 3);
    }
}

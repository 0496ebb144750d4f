//! Loads on sockets: `network`, `tcp`, `udp` and `unix`.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;

use rtorb_instruments::network::enter_new_network;
use rtorb_os::thread::{ThreadConfig, spawn};
use rustix::thread::gettid;

use super::workers::{Begun, Workers};
use crate::processes::load::{UNIX_PAIRS, WRITE_BYTES};
use crate::processes::veth::{self, DeviceKind};

/// A stream and datagrams of full frames over a link of their own, which no call takes. Returns why the link is the loopback device if
/// this process may not make another one, and nothing otherwise.
pub(super) fn over_own_link(workers: &mut Workers) -> io::Result<String> {
    let (sockets, why) = match between_namespaces() {
        Ok(sockets) => (sockets, String::new()),
        Err(refused) => {
            let why = format!("over the loopback device, since no link can be made: {refused}");
            ((connected()?, bound()?), why)
        }
    };
    let ((sender, receiver), datagrams) = sockets;
    start_stream(workers, sender, receiver)?;
    start_datagrams(workers, datagrams, FRAME_BYTES)?;
    Ok(why)
}

/// A sender and a receiver of a stream, and of datagrams.
type Sockets = ((TcpStream, TcpStream), (UdpSocket, UdpSocket));

/// Makes two network namespaces, joins them, and connects sockets from one to the other. Both exist as long as the sockets.
fn between_namespaces() -> io::Result<Sockets> {
    let (tell_entered, entered) = channel();
    let (tell_made, made) = channel();
    let (tell_bound, bound) = channel();
    let receiving = move || {
        // The other thread may have given up; then nobody wants to hear it.
        let there = enter_new_network().map(|()| gettid().as_raw_nonzero().get());
        let _ = tell_entered.send(there);
        if made.recv().is_ok() {
            let sockets = veth::set_up(DEVICE, RECEIVER).and_then(|()| {
                let datagrams = UdpSocket::bind((RECEIVER, 0))?;
                Ok((TcpListener::bind((RECEIVER, 0))?, datagrams))
            });
            let _ = tell_bound.send(sockets);
        }
    };
    let sending = move || -> io::Result<Sockets> {
        let peer = entered.recv().map_err(io::Error::other)??;
        enter_new_network()?;
        veth::make(DEVICE, peer.cast_unsigned(), KIND)?;
        veth::set_up(DEVICE, SENDER)?;
        tell_made.send(()).map_err(io::Error::other)?;
        let (listener, receiver) = bound.recv().map_err(io::Error::other)??;
        let stream = TcpStream::connect(listener.local_addr()?)?;
        let (accepted, _) = listener.accept()?;
        let sender = UdpSocket::bind((SENDER, 0))?;
        sender.connect(receiver.local_addr()?)?;
        Ok(((stream, accepted), (sender, receiver)))
    };
    let config = ThreadConfig::default();
    spawn("receiving-end", &config, receiving).map_err(io::Error::other)?;
    let sending = spawn("sending-end", &config, sending).map_err(io::Error::other)?;
    let ended = sending.join().ok().flatten();
    ended.unwrap_or_else(|| Err(io::Error::other("a thread panicked")))
}

/// One thread sends, another receives, both as fast as they can.
pub(super) fn stream(workers: &mut Workers) -> io::Result<()> {
    let (sender, receiver) = connected()?;
    start_stream(workers, sender, receiver)
}

fn start_stream(workers: &mut Workers, sender: TcpStream, receiver: TcpStream) -> io::Result<()> {
    workers.start("tcp-sender", |begun| send(sender, begun))?;
    workers.start("tcp-receiver", |begun| receive(receiver, begun))
}

/// The same with datagrams of so many octets, at most [`FRAME_BYTES`].
pub(super) fn datagrams(workers: &mut Workers, bytes: usize) -> io::Result<()> {
    start_datagrams(workers, bound()?, bytes)
}

fn start_datagrams(
    workers: &mut Workers,
    (sender, receiver): (UdpSocket, UdpSocket),
    bytes: usize,
) -> io::Result<()> {
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
const DEVICE: &str = "load";
/// It takes as many segments as a device of the kernel does by default.
const KIND: DeviceKind = DeviceKind {
    segments_max: 65_535,
    queues: 1,
};
/// For documentation (RFC 5737); nothing else is in the namespaces.
const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_over_the_own_link_is_received_on_it_alone() {
        let ((mut sender, mut receiver), (datagrams, received)) = match between_namespaces() {
            Ok(sockets) => sockets,
            Err(refused) => return println!("skipped: no network namespace: {refused}"),
        };
        let addresses = [&sender, &receiver].map(|socket| socket.local_addr().unwrap().ip());
        assert_eq!(addresses, [SENDER, RECEIVER].map(std::net::IpAddr::from));
        sender.write_all(b"flood").unwrap();
        let mut five = [0; 5];
        receiver.read_exact(&mut five).unwrap();
        assert_eq!(&five, b"flood");
        datagrams.send(b"one").unwrap();
        assert_eq!(received.recv(&mut five).unwrap(), 3);
        // This thread is still in the namespace of the host, which has no such device.
        assert!(veth::interface(DEVICE).is_err());
    }

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

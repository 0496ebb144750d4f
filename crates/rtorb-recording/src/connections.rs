//! The connections of a process, as the kernel counts them: the process pays nothing for it.
//!
//! sock_diag(7) tells of every socket of a network namespace. Those of a process are the ones that its descriptors lead to.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::inet::nlas::{Nla as InetNla, TcpInfo};
use netlink_packet_sock_diag::inet::{self, InetRequest, InetResponse, SocketId};
use netlink_packet_sock_diag::unix::nlas::{Nla as UnixNla, UnixDiagName};
use netlink_packet_sock_diag::unix::{self, UnixRequest, UnixResponse};
use netlink_packet_sock_diag::{AF_INET, AF_INET6, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr as Address};

/// A connection of a process. Numbers of bytes are those of the socket, below TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionRow {
    /// The address of the process's end: `HOST:PORT`, or the path of a UNIX socket; `@` and its name if that is abstract, empty if it has none.
    pub own: String,
    /// The address of the other end.
    pub peer: String,
    /// Bytes that have arrived and that the process has not read.
    pub unread_bytes: u32,
    /// Bytes that the process has sent and that the other end has not acknowledged; over a UNIX socket, memory of those that it has not read.
    pub unsent_bytes: u32,
    /// What the kernel counts for TCP; `None` for a UNIX socket.
    #[serde(flatten)]
    pub tcp: Option<TcpCounters>,
}

/// What the kernel has counted of a TCP connection since it was made (`struct tcp_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TcpCounters {
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// Bytes that were sent, each counted once.
    pub sent_bytes: u64,
    /// Segments that were sent again, because an acknowledgement did not come in time.
    pub retransmitted_segments: u32,
    /// The smoothed round-trip time, in us.
    pub round_trip_us: u32,
}

impl ConnectionRow {
    /// Returns the number of all its bytes in both directions, as far as the kernel counts them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tcp
            .map_or(0, |tcp| tcp.received_bytes.saturating_add(tcp.sent_bytes))
    }
}

/// Returns the TCP and UNIX connections of a process, by their addresses.
///
/// # Errors
/// The process has ended, is that of another user, or is in another network namespace, whose sockets the kernel does not show here; or the kernel
/// has no sock_diag.
pub fn of_process(process: u32) -> io::Result<Vec<ConnectionRow>> {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net"));
    if namespace(&process.to_string())? != namespace("self")? {
        return Err(io::Error::other(
            "the process is in another network namespace: look from there, by `ip netns exec` or `nsenter --net`",
        ));
    }
    let inodes = inodes(process)?;
    let mut rows = Vec::new();
    for family in [AF_INET, AF_INET6] {
        ask(tcp_request(family), |answer| {
            if let SockDiagMessage::InetResponse(socket) = answer
                && inodes.contains(&socket.header.inode)
            {
                rows.push(tcp_row(&socket));
            }
        })?;
    }
    // The name of the other end is that of another socket, perhaps of another process.
    let mut names = HashMap::new();
    let mut own = Vec::new();
    ask(unix_request(), |answer| {
        if let SockDiagMessage::UnixResponse(socket) = answer {
            names.insert(socket.header.inode, unix_name(&socket));
            if inodes.contains(&socket.header.inode) {
                own.push(socket);
            }
        }
    })?;
    rows.extend(own.iter().map(|socket| unix_row(socket, &names)));
    rows.sort_by(|one, other| (&one.own, &one.peer).cmp(&(&other.own, &other.peer)));
    Ok(rows)
}

/// Returns the inodes of the sockets of a process.
fn inodes(process: u32) -> io::Result<HashSet<u32>> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd"))?.flatten();
    let targets = descriptors.filter_map(|it| fs::read_link(it.path()).ok());
    Ok(targets
        .filter_map(|target| {
            let number = target.to_str()?.strip_prefix("socket:[")?;
            number.strip_suffix(']')?.parse().ok()
        })
        .collect())
}

fn tcp_request(family: u8) -> SockDiagMessage {
    SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: inet::ExtensionFlags::INFO,
        // A connection that the peer has closed and the process has not is one that leaks.
        states: inet::StateFlags::ESTABLISHED | inet::StateFlags::CLOSE_WAIT,
        socket_id: if family == AF_INET {
            SocketId::new_v4()
        } else {
            SocketId::new_v6()
        },
    })
}

fn unix_request() -> SockDiagMessage {
    SockDiagMessage::UnixRequest(UnixRequest {
        state_flags: unix::StateFlags::ESTABLISHED,
        inode: 0,
        show_flags: unix::ShowFlags::NAME | unix::ShowFlags::PEER | unix::ShowFlags::RQLEN,
        // Any socket (linux/inet_diag.h, INET_DIAG_NOCOOKIE).
        cookie: [0xff; 8],
    })
}

/// Asks the kernel for sockets, and passes on each that it has.
fn ask(question: SockDiagMessage, mut take: impl FnMut(SockDiagMessage)) -> io::Result<()> {
    let socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut message = NetlinkMessage::from(question);
    message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    // The kernel fills at most 32 KiB at a time.
    let mut answers = vec![0; 64 << 10];
    loop {
        let length = socket.recv(&mut &mut answers[..], 0)?;
        let mut rest = &answers[..length];
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while !rest.is_empty() {
            let answer = NetlinkMessage::<SockDiagMessage>::deserialize(rest);
            let answer = answer.map_err(io::Error::other)?;
            // Messages begin at multiples of four bytes (netlink(7), NLMSG_ALIGN).
            let next = (answer.header.length as usize).next_multiple_of(4);
            match answer.payload {
                NetlinkPayload::InnerMessage(socket) => take(socket),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::Done(_) => return Ok(()),
                _ => {}
            }
            rest = rest.get(next.max(1)..).unwrap_or_default();
        }
    }
}

fn tcp_row(socket: &InetResponse) -> ConnectionRow {
    let header = &socket.header;
    let SocketId {
        source_address,
        source_port,
        destination_address,
        destination_port,
        ..
    } = header.socket_id;
    let info = socket.nlas.iter().find_map(|attribute| match attribute {
        InetNla::TcpInfo(info) => Some(counters(info)),
        _ => None,
    });
    ConnectionRow {
        own: address(source_address, source_port),
        peer: address(destination_address, destination_port),
        unread_bytes: header.recv_queue,
        unsent_bytes: header.send_queue,
        tcp: info,
    }
}

fn counters(info: &TcpInfo) -> TcpCounters {
    TcpCounters {
        received_bytes: info.bytes_received,
        sent_bytes: info.bytes_sent.saturating_sub(info.bytes_retrans),
        retransmitted_segments: info.total_retrans,
        round_trip_us: info.rtt,
    }
}

/// Returns an address as text. One of IPv4 that a socket of IPv6 has is shown as one of IPv4.
fn address(host: IpAddr, port: u16) -> String {
    Address::new(host.to_canonical(), port).to_string()
}

fn unix_row(socket: &UnixResponse, names: &HashMap<u32, String>) -> ConnectionRow {
    let mut row = ConnectionRow {
        own: unix_name(socket),
        peer: String::new(),
        unread_bytes: 0,
        unsent_bytes: 0,
        tcp: None,
    };
    for attribute in &socket.nlas {
        match attribute {
            UnixNla::Peer(inode) => row.peer = names.get(inode).cloned().unwrap_or_default(),
            UnixNla::ReceiveQueueLength(unread, unsent) => {
                (row.unread_bytes, row.unsent_bytes) = (*unread, *unsent);
            }
            _ => {}
        }
    }
    row
}

fn unix_name(socket: &UnixResponse) -> String {
    let names = socket.nlas.iter().find_map(|attribute| match attribute {
        UnixNla::Name(UnixDiagName::Pathname(path)) => Some(path.to_string_lossy().into_owned()),
        UnixNla::Name(UnixDiagName::Abstract(name)) => {
            Some(format!("@{}", String::from_utf8_lossy(name)))
        }
        _ => None,
    });
    names.unwrap_or_default()
}

#[cfg(test)]
mod tests;

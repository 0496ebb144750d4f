//! The connections of processes, as the kernel counts them: the processes do nothing for it.
//!
//! sock_diag(7) tells of every socket of a network namespace, and locks each for a moment while it reads its counters. The sockets of a process are
//! those that its descriptors lead to.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use rustix::net::AddressFamily;
use serde::Serialize;

use crate::netlink::{Request, attribute, text, u32_at, u64_at};

/// A connection of a process. Numbers of bytes are those of the socket, below TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionRow {
    /// The address of the process's end: `HOST:PORT`, or the path of a UNIX socket; `@` and its name if that is abstract, empty if it has none.
    pub own: String,
    /// The address of the other end; of a UNIX socket also empty while nobody has accepted it, or if the other end is closed.
    pub peer: String,
    /// Bytes that have arrived and that the process has not read. The end of a TCP connection counts as one.
    pub unread_bytes: u32,
    /// Bytes that the process has sent and that the other end has not acknowledged. Of a UNIX socket it is the memory for what the other end has not read.
    pub unacknowledged_bytes: u32,
    /// What the kernel counts for TCP; `None` for a UNIX socket.
    #[serde(flatten)]
    pub tcp: Option<TcpCounters>,
}

/// What the kernel has counted of a TCP connection since it was made (`struct tcp_info` of linux/tcp.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TcpCounters {
    /// Bytes that arrived. The end of the connection counts as one.
    pub received_bytes: u64,
    /// Bytes that were sent, each counted once.
    pub sent_bytes: u64,
    /// Segments that were sent again, because the kernel took them for lost.
    pub retransmitted_segments: u32,
    /// The smoothed round-trip time, in us.
    pub round_trip_us: u32,
}

impl ConnectionRow {
    /// Returns the number of all its bytes in both directions, as far as the kernel counts them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let both = |tcp: TcpCounters| tcp.received_bytes.saturating_add(tcp.sent_bytes);
        self.tcp.map_or(0, both)
    }
}

/// Returns the TCP and UNIX connections of each of some processes, by their addresses, or why they are not known. Connections that are being made
/// or whose process has closed them are left out. While sockets come and go, a look may miss one.
///
/// The kernel goes through all sockets of the namespace once for all processes: a millisecond for each thousand.
///
/// # Errors
/// The process has ended, may not be read by the caller, or is in another network namespace, whose sockets the kernel does not show here; or the
/// kernel has no sock_diag.
pub fn of_processes(processes: &[u32]) -> Vec<io::Result<Vec<ConnectionRow>>> {
    let known: Vec<_> = processes.iter().map(|process| inodes(*process)).collect();
    let mut rows: HashMap<u32, Option<ConnectionRow>> = HashMap::new();
    for inode in known.iter().flatten().flatten() {
        rows.insert(*inode, None);
    }
    let asked = if rows.is_empty() {
        Ok(())
    } else {
        ask_for_all(&mut rows)
    };
    let of_process = |inodes: io::Result<Vec<u32>>| {
        let inodes = inodes?;
        asked.as_ref().map_err(copy_of)?;
        let found = inodes.iter().filter_map(|inode| rows.get(inode)?.clone());
        let mut found: Vec<ConnectionRow> = found.collect();
        found.sort_by(|one, other| (&one.own, &one.peer).cmp(&(&other.own, &other.peer)));
        Ok(found)
    };
    known.into_iter().map(of_process).collect()
}

fn copy_of(error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            io::ErrorKind::Unsupported,
            "the kernel does not tell of its sockets (CONFIG_INET_DIAG, CONFIG_INET_TCP_DIAG)",
        ),
        kind => io::Error::new(kind, error.to_string()),
    }
}

/// Returns the inodes of the sockets of a process of this network namespace.
fn inodes(process: u32) -> io::Result<Vec<u32>> {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net"));
    if namespace(&process.to_string())? != namespace("self")? {
        return Err(io::Error::other(
            "the process is in another network namespace: look from there, by `nsenter --net --target PID`",
        ));
    }
    let descriptors = fs::read_dir(format!("/proc/{process}/fd"))?.flatten();
    let targets = descriptors.filter_map(|it| fs::read_link(it.path()).ok());
    let mut inodes: Vec<u32> = targets
        .filter_map(|target| {
            let number = target.to_str()?.strip_prefix("socket:[")?;
            number.strip_suffix(']')?.parse().ok()
        })
        .collect();
    // A descriptor and its copy lead to one socket.
    inodes.sort_unstable();
    inodes.dedup();
    Ok(inodes)
}

/// Fills in the rows of those inodes that are connections.
fn ask_for_all(rows: &mut HashMap<u32, Option<ConnectionRow>>) -> io::Result<()> {
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        let request = tcp_request(family);
        Request::sockets(&request).dump_each(DATAGRAMS_MAX, |body| {
            if let Some((inode, row)) = tcp_row(body)
                && let Some(place) = rows.get_mut(&inode)
            {
                *place = Some(row);
            }
        })?;
    }
    // The name of the other end is that of another socket, perhaps of another process.
    let mut names: HashMap<u32, String> = HashMap::new();
    let mut peers: Vec<(u32, u32)> = Vec::new();
    let asked = Request::sockets(&unix_request()).dump_each(DATAGRAMS_MAX, |body| {
        let Some((inode, row, peer)) = unix_row(body) else {
            return;
        };
        if !row.own.is_empty() {
            names.insert(inode, row.own.clone());
        }
        if let Some(place) = rows.get_mut(&inode) {
            *place = Some(row);
            peers.extend(peer.map(|peer| (inode, peer)));
        }
    });
    match asked {
        // A kernel without CONFIG_UNIX_DIAG still tells of TCP.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        asked => asked?,
    }
    for (inode, peer) in peers {
        if let (Some(Some(row)), Some(name)) = (rows.get_mut(&inode), names.remove(&peer)) {
            row.peer = name;
        }
    }
    Ok(())
}

/// `struct inet_diag_req_v2` of linux/inet_diag.h: all sockets of a family that are connected, or whose peer has closed the connection and the process
/// has not.
fn tcp_request(family: AddressFamily) -> [u8; 56] {
    let mut request = [0; 56];
    let states = 1_u32 << TCP_ESTABLISHED | 1 << TCP_CLOSE_WAIT;
    request[0] = family.as_raw() as u8;
    request[1] = IPPROTO_TCP;
    request[2] = 1 << (INET_DIAG_INFO - 1);
    request[4..8].copy_from_slice(&states.to_ne_bytes());
    request
}

/// `struct unix_diag_req` of linux/unix_diag.h: all sockets that are connected, with their names, their peers and what waits in them.
fn unix_request() -> [u8; 24] {
    let mut request = [0; 24];
    request[0] = AddressFamily::UNIX.as_raw() as u8;
    request[4..8].copy_from_slice(&(1_u32 << TCP_ESTABLISHED).to_ne_bytes());
    let shown = 1_u32 << UNIX_DIAG_NAME | 1 << UNIX_DIAG_PEER | 1 << UNIX_DIAG_RQLEN;
    request[12..16].copy_from_slice(&shown.to_ne_bytes());
    request
}

/// Reads `struct inet_diag_msg` of linux/inet_diag.h. Returns the inode and the row.
fn tcp_row(body: &[u8]) -> Option<(u32, ConnectionRow)> {
    let family = AddressFamily::from_raw(u16::from(*body.first()?));
    let interface = u32_at(body, 40)?;
    let address = |port_at: usize, host_at: usize| {
        let port = u16::from_be_bytes(*body.get(port_at..)?.first_chunk()?);
        let host = body.get(host_at..)?;
        Some(if family == AddressFamily::INET {
            let host: [u8; 4] = *host.first_chunk()?;
            SocketAddr::from((Ipv4Addr::from(host), port)).to_string()
        } else {
            let host: [u8; 16] = *host.first_chunk()?;
            ipv6(host.into(), port, interface)
        })
    };
    let attributes = body.get(72..)?;
    let row = ConnectionRow {
        own: address(4, 8)?,
        peer: address(6, 24)?,
        unread_bytes: u32_at(body, 56)?,
        unacknowledged_bytes: u32_at(body, 60)?,
        tcp: attribute(attributes, INET_DIAG_INFO).and_then(counters),
    };
    Some((u32_at(body, 68)?, row))
}

/// Returns an address as text: one of IPv4 that a socket of IPv6 has as one of IPv4, one of a link with its interface.
fn ipv6(host: Ipv6Addr, port: u16, interface: u32) -> String {
    match host.to_canonical() {
        IpAddr::V4(host) => SocketAddr::from((host, port)).to_string(),
        IpAddr::V6(host) => {
            let scope = if host.is_unicast_link_local() {
                interface
            } else {
                0
            };
            SocketAddrV6::new(host, port, 0, scope).to_string()
        }
    }
}

/// Reads `struct tcp_info` of linux/tcp.h, up to Linux 5.4.
fn counters(info: &[u8]) -> Option<TcpCounters> {
    Some(TcpCounters {
        received_bytes: u64_at(info, 128)?,
        sent_bytes: u64_at(info, 200)?.saturating_sub(u64_at(info, 208)?),
        retransmitted_segments: u32_at(info, 100)?,
        round_trip_us: u32_at(info, 68)?,
    })
}

/// Reads `struct unix_diag_msg` of linux/unix_diag.h. Returns the inode, the row without the name of the other end, and the inode of that end; `None` for a socket of
/// datagrams, which has no connections.
fn unix_row(body: &[u8]) -> Option<(u32, ConnectionRow, Option<u32>)> {
    if *body.get(1)? == SOCK_DGRAM {
        return None;
    }
    let attributes = body.get(16..)?;
    let of = |kind: u16| attribute(attributes, kind);
    let own = match of(UNIX_DIAG_NAME) {
        Some([0, name @ ..]) => format!("@{}", String::from_utf8_lossy(name)),
        Some(path) => text(path),
        None => String::new(),
    };
    let waiting = of(UNIX_DIAG_RQLEN);
    let waits = |at: usize| waiting.and_then(|waiting| u32_at(waiting, at));
    let row = ConnectionRow {
        own,
        peer: String::new(),
        unread_bytes: waits(0).unwrap_or(0),
        unacknowledged_bytes: waits(4).unwrap_or(0),
        tcp: None,
    };
    let peer = of(UNIX_DIAG_PEER).and_then(|peer| u32_at(peer, 0));
    Some((u32_at(body, 4)?, row, peer))
}

/// linux/net.h, linux/in.h, linux/tcp_states.h.
const SOCK_DGRAM: u8 = 2;
const IPPROTO_TCP: u8 = 6;
const TCP_ESTABLISHED: u32 = 1;
const TCP_CLOSE_WAIT: u32 = 8;
/// linux/inet_diag.h.
const INET_DIAG_INFO: u16 = 2;
/// linux/unix_diag.h.
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_PEER: u16 = 2;
const UNIX_DIAG_RQLEN: u16 = 4;
/// Enough for a million sockets.
const DATAGRAMS_MAX: usize = 1 << 14;

#[cfg(test)]
mod tests;

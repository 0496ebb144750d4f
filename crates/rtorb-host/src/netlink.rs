//! What the kernel says about network interfaces by netlink(7) and by no file: when a device interrupts, and in which order
//! packets leave. [`Request`] also makes devices and the like.
//!
//! Every user may ask. Netlink needs no `unsafe` code, as the ioctl(2) of ethtool(8) would.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

pub use coalescing::Coalescing;
pub(crate) use disciplines::Discipline;
#[cfg(test)]
pub(crate) use disciplines::ROOT;

mod coalescing;
mod disciplines;

/// The kernel's answers about all network interfaces. `None` where the kernel gives no answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkAnswers {
    /// The interrupt settings of those devices that have any.
    pub(crate) coalescing: Option<Vec<InterfaceCoalescing>>,
    /// The queueing disciplines of all interfaces.
    pub(crate) disciplines: Option<Vec<Discipline>>,
}

impl NetworkAnswers {
    /// Asks the kernel. Takes at most a few seconds, and usually less than a millisecond.
    pub(crate) fn of_this_host() -> Self {
        Self {
            coalescing: coalescing::ask(),
            disciplines: disciplines::ask(),
        }
    }
}

/// The interrupt settings of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceCoalescing {
    /// The index of the interface.
    pub(crate) interface: u32,
    pub(crate) coalescing: Coalescing,
}

/// A request to the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `None` is NETLINK_ROUTE.
    protocol: Option<Protocol>,
    kind: u16,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// A request about links, addresses or queueing disciplines (rtnetlink(7)). The body begins with the header that messages of
    /// this kind have, and [`attribute_bytes`] follow.
    #[must_use]
    pub fn route(kind: u16, body: &'a [u8]) -> Self {
        let protocol = None;
        Self {
            protocol,
            kind,
            body,
        }
    }

    /// Has the kernel make an object, in the place of the one that is there, or change or remove one, as the kind says.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn apply(self) -> io::Result<()> {
        let socket = self.sent(NLM_F_ACK | NLM_F_REPLACE | NLM_F_CREATE)?;
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let (received, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        acknowledged(&buffer[..received])
    }

    /// A request about sockets (sock_diag(7)). The body begins with the header that requests of an address family have.
    pub(crate) fn sockets(body: &'a [u8]) -> Self {
        Self {
            protocol: Some(SOCK_DIAG),
            kind: SOCK_DIAG_BY_FAMILY,
            body,
        }
    }

    /// Returns the bodies of the kernel's messages, one for each object; `None` if the kernel refuses.
    fn dump(self) -> Option<Vec<Vec<u8>>> {
        let mut bodies = Vec::new();
        let take = |body: &[u8]| bodies.push(body.to_vec());
        self.dump_each(DATAGRAMS_MAX, take).ok()?;
        Some(bodies)
    }

    /// Passes on the body of each of the kernel's messages, one for each object, of so many datagrams at most.
    ///
    /// # Errors
    /// What the kernel said; FileTooLarge if there are more.
    pub(crate) fn dump_each(
        self,
        datagrams_max: usize,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let socket = self.sent(NLM_F_DUMP)?;
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        for _ in 0..datagrams_max {
            let (received, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            if let Part::Last = read_datagram(&buffer[..received], &mut take)? {
                return Ok(());
            }
        }
        Err(io::ErrorKind::FileTooLarge.into())
    }

    /// A socket that will receive the kernel's answer.
    fn sent(self, flags: u16) -> io::Result<OwnedFd> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            self.protocol,
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIME_MAX))?;
        send(&socket, &self.message(flags), SendFlags::empty())?;
        Ok(socket)
    }

    /// The request with its header, struct nlmsghdr of linux/netlink.h.
    fn message(self, flags: u16) -> Vec<u8> {
        let length = u32::try_from(HEADER_BYTES + self.body.len()).unwrap_or(u32::MAX);
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(self.kind.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend([0; SEQUENCE_AND_PORT_BYTES]);
        message.extend(self.body);
        message
    }
}

/// Whether more datagrams follow.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    More,
    Last,
}

/// Passes on the bodies of a datagram's messages. It is an error if one is an error or malformed.
fn read_datagram(datagram: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<Part> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let mut rest = datagram;
    while !rest.is_empty() {
        let length = u32_at(rest, 0).ok_or_else(malformed)? as usize;
        let body = rest.get(HEADER_BYTES..length).ok_or_else(malformed)?;
        match u16_at(rest, 4).ok_or_else(malformed)? {
            NLMSG_ERROR => return Err(code(body).err().unwrap_or_else(malformed)),
            NLMSG_DONE if body.is_empty() => return Ok(Part::Last),
            NLMSG_DONE => return code(body).map(|()| Part::Last),
            kind if kind >= NLMSG_MIN_TYPE => take(body),
            _ => {}
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    Ok(Part::More)
}

/// Reads the number at the beginning of a body: that of an error, of which 0 is none.
fn code(body: &[u8]) -> io::Result<()> {
    match u32_at(body, 0).map(u32::cast_signed) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Reads the kernel's answer to a request that changes something.
fn acknowledged(datagram: &[u8]) -> io::Result<()> {
    match (u16_at(datagram, 4), datagram.get(HEADER_BYTES..)) {
        (Some(NLMSG_ERROR), Some(body)) => code(body),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// An attribute (struct nlattr of linux/netlink.h), with the bytes by which the next one is aligned.
#[must_use]
pub fn attribute_bytes(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// The first attribute of a kind.
pub(crate) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = attributes;
    while !rest.is_empty() {
        let length = usize::from(u16_at(rest, 0)?);
        let value = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        if u16_at(rest, 2)? & NLA_TYPE_MASK == kind {
            return Some(value);
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    None
}

/// An attribute's text without its final zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value)
        .trim_end_matches('\0')
        .to_owned()
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

/// Messages and attributes begin at multiples of four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// linux/netlink.h.
const HEADER_BYTES: usize = 16;
const SEQUENCE_AND_PORT_BYTES: usize = 8;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_CREATE: u16 = 0x400;
/// linux/sock_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSG_MIN_TYPE: u16 = 16;
/// Without the flags for nesting and byte order.
const NLA_TYPE_MASK: u16 = 0x3fff;
/// The kernel sends at most 32 KiB at once (netlink(7)).
const DATAGRAM_BYTES_MAX: usize = 1 << 16;
/// Enough for 10,000 interfaces.
const DATAGRAMS_MAX: usize = 256;
/// The kernel answers at once.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the kernel.
    pub(super) fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = Request::route(kind, body).message(NLM_F_DUMP);
        message.resize(aligned(message.len()), 0);
        message
    }

    #[test]
    fn a_datagram_has_several_messages() {
        let mut bodies: Vec<Vec<u8>> = Vec::new();
        let mut take = |body: &[u8]| bodies.push(body.to_vec());
        let two = [message(21, b"first"), message(21, b"second")].concat();
        assert_eq!(read_datagram(&two, &mut take).unwrap(), Part::More);
        let last = message(NLMSG_DONE, &[0; 4]);
        assert_eq!(read_datagram(&last, &mut take).unwrap(), Part::Last);
        assert_eq!(bodies.len(), 2);
        assert!(bodies[1].starts_with(b"second"));
    }

    #[test]
    fn an_error_and_a_malformed_datagram_give_nothing() {
        let refused = message(NLMSG_ERROR, &(-95i32).to_ne_bytes());
        let failed = message(NLMSG_DONE, &(-95i32).to_ne_bytes());
        let mut empty = message(21, b"");
        empty[..4].copy_from_slice(&0u32.to_ne_bytes());
        let mut long = message(21, b"body");
        long[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        let cut = message(21, b"body")[..10].to_vec();
        for (datagram, code) in [
            (refused, Some(95)),
            (failed, Some(95)),
            (empty, None),
            (long, None),
            (cut, None),
        ] {
            let failed = read_datagram(&datagram, |_| ()).unwrap_err();
            assert_eq!(failed.raw_os_error(), code);
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_an_error_with_its_number() {
        let answer = |code: i32| acknowledged(&message(NLMSG_ERROR, &code.to_ne_bytes()));
        assert!(answer(0).is_ok());
        assert_eq!(answer(-95).unwrap_err().raw_os_error(), Some(95));
        assert!(answer(i32::MIN).is_err());
        for other in [message(21, b"body"), message(NLMSG_ERROR, b""), vec![2]] {
            assert!(acknowledged(&other).is_err(), "{other:?}");
        }
        // No kernel has such a kind.
        let refused = Request::route(u16::MAX, &[]).apply();
        assert!(refused.is_err());
    }

    #[test]
    fn attributes_are_found_behind_others_and_never_outside() {
        let nested = 0x8000;
        let bytes = [
            attribute_bytes(1, b"abc"),
            attribute_bytes(nested | 2, b"z"),
        ]
        .concat();
        assert_eq!(attribute(&bytes, 2), Some(&b"z"[..]));
        assert_eq!(attribute(&bytes, 3), None);
        assert_eq!(attribute(&bytes[..bytes.len() - 4], 2), None);
        assert_eq!(attribute(&[0, 0, 0, 0], 1), None);
    }

    #[test]
    fn this_kernel_names_the_disciplines_of_its_interfaces() {
        // A sandbox may refuse netlink: then there is no answer.
        for found in NetworkAnswers::of_this_host()
            .disciplines
            .into_iter()
            .flatten()
        {
            assert!(!found.kind.is_empty());
        }
    }
}

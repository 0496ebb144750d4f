//! Remedies for system exceptions, by their minor codes and the step in which they arose.

use super::{ExceptionKind, OMG, Phase, RTORB, SystemException, local, text};
use rtorb_wire::exception;
use rustix::io::Errno;

/// Minor codes of INV_POLICY: which policies are not compatible.
pub mod inconsistent {
    use super::{OMG, RTORB};

    /// The reference and the client both set bands, or both set protocols (CORBA 3, INV_POLICY 1).
    pub const SET_TWICE: u32 = OMG | 1;
    /// Bands for an object without a priority model.
    pub const BANDS_WITHOUT_MODEL: u32 = RTORB | 1;
    /// No band for the caller's priority.
    pub const NO_BAND: u32 = RTORB | 2;
    /// No lane for the caller's priority, or for its band.
    pub const NO_LANE: u32 = RTORB | 3;
    /// No profile of a protocol of the client's.
    pub const NO_PROTOCOL: u32 = RTORB | 4;
    /// SYNC_NONE where many threads wait on one connection.
    pub const SYNC_NONE_ON_SHARED: u32 = RTORB | 5;
}

/// Minor code of IMP_LIMIT for a reference without a profile that this ORB supports.
pub const NO_USABLE_PROFILE: u32 = OMG | 1;

/// Minor code of IMP_LIMIT for too many nested collocated calls.
pub const COLLOCATED_DEPTH: u32 = RTORB | 1;

/// Minor codes of TRANSIENT for non-blocking oneways.
pub mod oneway {
    use super::RTORB;

    /// No connection is open.
    pub const UNCONNECTED: u32 = RTORB | 1;
    /// The rest of an earlier oneway is not sent yet.
    pub const BEHIND_ANOTHER: u32 = RTORB | 2;
    /// Another thread uses the connection.
    pub const IN_USE: u32 = RTORB | 3;
}

impl SystemException {
    /// Returns the remedy, if it is clear.
    pub fn advice(&self) -> Option<&'static str> {
        if let Some(words) = local::words(self.kind, self.minor) {
            return Some(words);
        }
        if let Some(advice) = text::advice(self.kind, self.minor, self.unsent) {
            return Some(advice);
        }
        let phase = self.cause.as_ref().map(|cause| cause.phase);
        match (self.kind, phase) {
            (ExceptionKind::Timeout, Some(Phase::Resolve)) => Some(
                "the name servers of this host do not reply in time: check them, or use a numeric address in the reference",
            ),
            (_, Some(Phase::Resolve)) => Some(
                "the host name is unknown, or no name server answers: check the name in the reference, and ask for it with \
                 `getent hosts NAME`",
            ),
            (_, Some(Phase::SetUp)) => Some(
                "check the properties of the protocol policy (socket priorities above 6 need CAP_NET_ADMIN) and the limit of \
                 open files",
            ),
            (ExceptionKind::InvPolicy, _) => self.inconsistency(),
            (_, Some(Phase::Listen)) if self.is_refused() => Some(
                "choose a port of 1024 or more, or a path in a folder that this user may write to",
            ),
            (_, Some(Phase::Listen)) => {
                Some("choose an address of this host and a port or path that is free")
            }
            (ExceptionKind::Transient, phase) => self.transient(phase),
            (ExceptionKind::Timeout, Some(Phase::AwaitUnserved)) => Some(
                "a callback waits for this ORB: call `Orb::run` in another thread before the call",
            ),
            (ExceptionKind::Timeout, _) => Some(
                "allow more time, by the timeout or the deadline of the call, or find out what holds the server",
            ),
            (ExceptionKind::CommFailure, _) if self.minor == exception::NOT_UNDERSTOOD => Some(
                "the server did not understand a message of this client, and does not say why (MessageError): look at its log, \
                 try an older GIOP version (`OrbBuilder::max_giop_version`, or corbaloc:iiop:1.0@HOST:PORT/KEY), or raise the \
                 server's `message_bytes_max`",
            ),
            (ExceptionKind::CommFailure, _) => {
                Some("the server ended or closed the connection: try again")
            }
            (ExceptionKind::ObjectNotExist, _) => Some("the object is gone: get a new reference"),
            (ExceptionKind::BadOperation, _) => {
                Some("client and server were built from different IDL")
            }
            (ExceptionKind::Marshal, _) => exception::broken_rule(self.minor).or(Some(
                "client and server disagree on the types, or a limit was passed",
            )),
            (ExceptionKind::ImpLimit, _) if self.minor == COLLOCATED_DEPTH => Some(
                "collocated calls within each other: find out whether they end; if they do, raise `collocated_depth_max` in \
                 `Limits` and the stack of the thread",
            ),
            (ExceptionKind::ImpLimit, _) if self.minor == NO_USABLE_PROFILE => Some(
                "no address in the reference can be used: its port is 0, this ORB knows none of its transports, or the server wants its calls \
                 protected in a way that this ORB does not have",
            ),
            (ExceptionKind::ImpLimit, _) => Some("raise the limit in `Limits`"),
            (ExceptionKind::BadParam, None) => self.bad_url(),
            _ => None,
        }
    }
}

impl SystemException {
    /// The remedy for TRANSIENT.
    fn transient(&self, phase: Option<Phase>) -> Option<&'static str> {
        let unsent = self.unsent_oneway();
        if unsent.is_some() {
            return unsent;
        }
        Some(match phase? {
            Phase::Forward => "servers forward the call in a circle: check where each forwards it",
            Phase::Handshake => {
                "the server closed the connection in the handshake of TLS: check that it speaks TLS at this address, look at its log, \
                 or try again later"
            }
            Phase::Connect => {
                "check that the server runs, and that the reference is not from an earlier run of the server"
            }
            Phase::AwaitReply => {
                "the server refused the connection or ends: try again later; if it is full of busy connections, raise its \
                 `connections_max` and its limit of open files"
            }
            _ => return None,
        })
    }

    /// Returns true if the host refused it because a permission is missing.
    fn is_refused(&self) -> bool {
        let errno = self.cause.as_ref().and_then(|cause| cause.errno);
        errno.is_some_and(|errno| errno.raw() == Errno::ACCESS.raw_os_error())
    }

    /// The mistake in the text of a reference (CORBA 3, 13.6.10.9).
    fn bad_url(&self) -> Option<&'static str> {
        Some(match self.minor.checked_sub(OMG)? {
            7 => "a reference begins with IOR:, corbaloc:, corbaname: or file:",
            8 => "an address in it cannot be parsed: write corbaloc:iiop:1.2@HOST:PORT/KEY",
            9 => "the part after the scheme cannot be parsed",
            10 => "it is not a reference: copy all of what the server printed",
            _ => return None,
        })
    }

    /// Returns why a non-blocking oneway was not sent, with the remedy.
    fn unsent_oneway(&self) -> Option<&'static str> {
        Some(match self.minor {
            oneway::UNCONNECTED => {
                "a oneway with SyncScope::None does not connect: open the connection with validate_connection"
            }
            oneway::BEHIND_ANOTHER => {
                "the server takes oneways slower than they are sent: send it again once flush returns true"
            }
            oneway::IN_USE => {
                "another thread uses the connection: send it again, or give the reference a connection of its own \
                 (PrivateConnection)"
            }
            _ => return None,
        })
    }

    /// Returns which policies of a client are not compatible, with the remedy.
    fn inconsistency(&self) -> Option<&'static str> {
        Some(match self.minor {
            inconsistent::SET_TWICE => {
                "PriorityBandedConnection or ClientProtocol is set by the object's adapter and by the client: leave it to one"
            }
            inconsistent::BANDS_WITHOUT_MODEL => {
                "PriorityBandedConnection needs an object whose adapter has a PriorityModel: take the override away"
            }
            inconsistent::NO_BAND => {
                "no band of PriorityBandedConnection has the call's priority: give one that a band has (RTCurrent's set_the_priority in \
                 a program, `--priority` of the command), or add a band"
            }
            inconsistent::NO_LANE => {
                "no lane of the server has the call's priority or band: give the priority of a lane (RTCurrent's set_the_priority in \
                 a program, `--priority` of the command), or add a lane or a band that has one"
            }
            inconsistent::NO_PROTOCOL => {
                "the reference has no profile of a protocol in ClientProtocol: add one of the reference's"
            }
            inconsistent::SYNC_NONE_ON_SHARED => {
                "SyncScope::None needs a connection that one thread uses at a time: build the ORB with the wait strategy \
                 `read` and without bidirectional connections, or let the oneway wait for the transport"
            }
            _ => return None,
        })
    }
}

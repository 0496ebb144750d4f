//! System exceptions. Errors of the layers below become exceptions here.

mod detail;
pub mod local;
pub(crate) mod text;

use crate::endpoint::Endpoint;
use core::fmt;
use core::num::NonZeroI32;
use detail::Detail;
use rtorb_wire::{DecodeError, EncodeError, exception};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

pub use rtorb_wire::exception::{CompletionStatus, ExceptionKind, OMG, RTORB};
pub use text::{TextCodeSet, UnsentCharacter};

/// Minor codes of INV_POLICY: which policies are not compatible.
pub(crate) mod inconsistent {
    use super::{OMG, RTORB};

    /// The reference and the client both set bands, or both set protocols (CORBA 3, INV_POLICY 1).
    pub(crate) const SET_TWICE: u32 = OMG | 1;
    /// Bands for an object without a priority model.
    pub(crate) const BANDS_WITHOUT_MODEL: u32 = RTORB | 1;
    /// No band for the caller's priority.
    pub(crate) const NO_BAND: u32 = RTORB | 2;
    /// No lane for the caller's priority, or for its band.
    pub(crate) const NO_LANE: u32 = RTORB | 3;
    /// No profile of a protocol of the client's.
    pub(crate) const NO_PROTOCOL: u32 = RTORB | 4;
    /// SYNC_NONE where many threads wait on one connection.
    pub(crate) const SYNC_NONE_ON_SHARED: u32 = RTORB | 5;
}

/// Minor code of IMP_LIMIT for a reference without a profile that this ORB supports.
pub(crate) const NO_USABLE_PROFILE: u32 = OMG | 1;

/// Minor code of IMP_LIMIT for too many nested collocated calls.
pub(crate) const COLLOCATED_DEPTH: u32 = RTORB | 1;

/// Minor codes of TRANSIENT for non-blocking oneways.
pub(crate) mod oneway {
    use super::RTORB;

    /// No connection is open.
    pub(crate) const UNCONNECTED: u32 = RTORB | 1;
    /// The rest of an earlier oneway is not sent yet.
    pub(crate) const BEHIND_ANOTHER: u32 = RTORB | 2;
    /// Another thread uses the connection.
    pub(crate) const IN_USE: u32 = RTORB | 3;
}

/// A CORBA system exception, and its cause where this ORB knows it.
///
/// Only `kind`, `minor` and `completed` are sent to a client; the [`Cause`] and the [detail](Self::detail) stay on the side where
/// they were found. The text of an exception has all of these, and advice where the remedy is clear.
///
/// ```
/// use rtorb::{CompletionStatus, ExceptionKind};
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = rtorb::Orb::builder().build()?;
/// // Nothing listens on port 1.
/// let object = orb.string_to_object("corbaloc:iiop:127.0.0.1:1/Valve")?;
/// let exception = object.is_a("IDL:Valve:1.0").expect_err("it cannot connect");
/// assert_eq!(exception.kind, ExceptionKind::Transient);
/// // The call was not carried out: calling again is safe.
/// assert_eq!(exception.completed, CompletionStatus::No);
/// // TRANSIENT (minor 0x4f4d0002, COMPLETED_NO): connecting to iiop://127.0.0.1:1, after 60us: Connection refused ...
/// println!("{exception}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemException {
    /// Which exception.
    pub kind: ExceptionKind,
    /// The reason in numbers: a vendor id in the upper 20 bits, a code in the lower 12.
    pub minor: u32,
    /// Whether the operation was carried out.
    pub completed: CompletionStatus,
    /// Where it arose, if that was in this process.
    pub cause: Option<Cause>,
    /// The values that it concerns, if a local check found it.
    detail: Option<Box<Detail>>,
    /// The character that could not be sent.
    unsent: Option<UnsentCharacter>,
}

/// Where a system exception arose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// The step of the invocation.
    pub phase: Phase,
    /// The endpoint that it concerns.
    pub endpoint: Option<Arc<Endpoint>>,
    /// The duration of the phase, or of the call where a timeout counts from its beginning.
    pub elapsed: Duration,
    /// The error of the operating system, if there was one.
    pub errno: Option<OsError>,
}

impl Cause {
    /// A refusal by the host that concerns no endpoint.
    pub(crate) fn host(phase: Phase, errno: Errno) -> Self {
        Self {
            phase,
            endpoint: None,
            elapsed: Duration::ZERO,
            errno: Some(errno.into()),
        }
    }
}

/// An error number of the operating system.
///
/// ```
/// # fn log(exception: &rtorb::SystemException) {
/// if let Some(errno) = exception.cause.as_ref().and_then(|cause| cause.errno) {
///     println!("{}", std::io::Error::from(errno));
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", std::io::Error::from(*self))]
pub struct OsError(NonZeroI32);

impl OsError {
    /// The number, as `errno` has it.
    pub const fn raw(self) -> i32 {
        self.0.get()
    }
}

impl From<Errno> for OsError {
    fn from(errno: Errno) -> Self {
        // No error has the number 0.
        Self(NonZeroI32::new(errno.raw_os_error()).unwrap_or(NonZeroI32::MAX))
    }
}

impl From<OsError> for std::io::Error {
    fn from(error: OsError) -> Self {
        Self::from_raw_os_error(error.raw())
    }
}

/// The steps of an invocation, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Resolving the host name.
    Resolve,
    /// Opening the connection.
    Connect,
    /// Applying policies and strategies to a new connection.
    SetUp,
    /// Encoding and sending the request.
    Send,
    /// Waiting for the reply.
    AwaitReply,
    /// Waiting for the reply, while a client waits at an endpoint of this ORB that no thread serves.
    AwaitUnserved,
    /// Decoding the reply.
    DecodeReply,
    /// Following LOCATION_FORWARD replies from one server to another.
    Forward,
    /// Opening a listening endpoint.
    Listen,
    /// Giving a thread its scheduling policy and priority.
    Schedule,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolving the host name of",
            Self::Connect => "connecting to",
            Self::SetUp => "setting up a connection to",
            Self::Send => "sending a request to",
            Self::AwaitReply => "awaiting a reply from",
            Self::AwaitUnserved => {
                "while nobody serves this ORB's own endpoint, awaiting a reply from"
            }
            Self::DecodeReply => "decoding a reply from",
            Self::Forward => "following forwards from",
            Self::Listen => "listening on",
            Self::Schedule => "setting a thread's priority",
        })
    }
}

impl SystemException {
    /// An exception without a cause.
    pub const fn new(kind: ExceptionKind, minor: u32, completed: CompletionStatus) -> Self {
        Self {
            kind,
            minor,
            completed,
            cause: None,
            detail: None,
            unsent: None,
        }
    }

    /// An exception with a minor code of the OMG, for an operation that was not carried out.
    pub const fn omg(kind: ExceptionKind, code: u32) -> Self {
        Self::new(kind, OMG | code, CompletionStatus::No)
    }

    /// An exception with minor code 0, COMPLETED_NO.
    const fn plain(kind: ExceptionKind) -> Self {
        Self::new(kind, 0, CompletionStatus::No)
    }

    /// The same exception with another completion status.
    #[must_use]
    pub const fn with_completion(mut self, completed: CompletionStatus) -> Self {
        self.completed = completed;
        self
    }

    /// The same exception with its cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// The character that could not be sent, for DATA_CONVERSION that arose here.
    pub const fn unsent_character(&self) -> Option<UnsentCharacter> {
        self.unsent
    }

    /// The exception for a decoding error, for an operation that was not carried out.
    pub const fn from_decode(error: DecodeError) -> Self {
        let (kind, minor) = exception::of_decoding(error);
        Self::new(kind, minor, CompletionStatus::No)
    }

    /// The exception for an encoding error, for an operation that was not carried out.
    pub const fn from_encode(error: EncodeError) -> Self {
        let (kind, minor) = exception::of_encoding(error);
        let mut exception = Self::new(kind, minor, CompletionStatus::No);
        exception.unsent = UnsentCharacter::of(error);
        exception
    }
}

impl From<ExceptionKind> for SystemException {
    fn from(kind: ExceptionKind) -> Self {
        Self::plain(kind)
    }
}

/// The exception for arguments of a request that cannot be decoded. Wide characters in GIOP 1.0 are the client's mistake
/// (CORBA 3, MARSHAL 5; in a reply they are the server's, MARSHAL 6).
impl From<DecodeError> for SystemException {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::WideInGiop10 => Self::omg(ExceptionKind::Marshal, 5),
            error => Self::from_decode(error),
        }
    }
}

impl From<EncodeError> for SystemException {
    fn from(error: EncodeError) -> Self {
        Self::from_encode(error)
    }
}

impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (minor {:#010x}, {})",
            self.kind, self.minor, self.completed
        )?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        if let Some(detail) = self.detail() {
            write!(f, ": {detail}")?;
        }
        if let Some(character) = &self.unsent {
            write!(f, ": {character}")?;
        }
        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
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
            (ExceptionKind::Transient, _) if self.unsent_oneway().is_some() => self.unsent_oneway(),
            (ExceptionKind::Transient, Some(Phase::Forward)) => {
                Some("servers forward the call in a circle: check where each forwards it")
            }
            (ExceptionKind::Transient, Some(Phase::Connect)) => Some(
                "check that the server runs, and that the reference is not from an earlier run of the server",
            ),
            (ExceptionKind::Transient, Some(Phase::AwaitReply)) => Some(
                "the server refused the connection or ends: try again later; if it is full of busy connections, raise its \
                 `connections_max` and its limit of open files",
            ),
            (ExceptionKind::Timeout, Some(Phase::AwaitUnserved)) => Some(
                "a callback waits for this ORB: call `Orb::run` in another thread before the call",
            ),
            (ExceptionKind::Timeout, _) => {
                Some("raise the timeout, or find out what holds the server")
            }
            (ExceptionKind::CommFailure, _) if self.minor == exception::NOT_UNDERSTOOD => Some(
                "the server did not understand a message of this client, and does not say why (MessageError): look at its log, and \
                 try an older GIOP version (`OrbBuilder::max_giop_version`, or corbaloc:iiop:1.0@HOST:PORT/KEY)",
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
                "no address in the reference can be used: its port is 0, or this ORB knows none of its transports",
            ),
            (ExceptionKind::ImpLimit, _) => Some("raise the limit in `Limits`"),
            (ExceptionKind::BadParam, None) => self.bad_url(),
            _ => None,
        }
    }
}

impl SystemException {
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
                 `read`, or let the oneway wait for the transport"
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.phase)?;
        if let Some(endpoint) = &self.endpoint {
            write!(f, " {endpoint}")?;
        }
        if !self.elapsed.is_zero() {
            write!(f, ", after {}", TimeText(self.elapsed))?;
        }
        match self.errno {
            Some(errno) => write!(f, ": {errno}"),
            None => Ok(()),
        }
    }
}

/// Returns the text of a time: with one decimal, in the largest unit in which it is at least 1.
struct TimeText(Duration);

impl fmt::Display for TimeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        match units.into_iter().find(|(unit_ns, _)| ns >= *unit_ns) {
            Some((unit_ns, unit)) => {
                let (whole, tenths) = (ns / unit_ns, ns % unit_ns * 10 / unit_ns);
                match tenths {
                    0 => write!(f, "{whole}{unit}"),
                    _ => write!(f, "{whole}.{tenths}{unit}"),
                }
            }
            None => write!(f, "{ns}ns"),
        }
    }
}

impl std::error::Error for SystemException {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let errno = self.cause.as_ref()?.errno.as_ref()?;
        Some(errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_have_fitting_units() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (161_851, "161.8us"),
            (500_000_000, "500ms"),
            (2_000_000_000, "2s"),
        ] {
            assert_eq!(TimeText(Duration::from_nanos(ns)).to_string(), text);
        }
    }
}

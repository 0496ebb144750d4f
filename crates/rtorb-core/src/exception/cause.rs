//! Where a system exception arose.

use super::SystemException;
use crate::endpoint::Endpoint;
use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroI32;
use core::time::Duration;
use rustix::io::Errno;

/// Where a system exception arose.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    #[doc(hidden)]
    pub fn host(phase: Phase, errno: Errno) -> Self {
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
/// # fn log(exception: &rtorb_core::SystemException) {
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
    /// The handshake of TLS.
    Handshake,
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
            Self::Handshake => "in the TLS handshake with",
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
    /// The same exception with its cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

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

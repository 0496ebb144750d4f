//! The data of the service contexts that the ORB knows.

use crate::cdr::{ByteOrder, decode_encapsulated, encapsulate};
use crate::exception::RTORB;
use crate::{Decode, DecodeError, Encode, EncodeError, Reader};
use alloc::vec::Vec;

pub use crate::code_sets::CodeSets;
pub use crate::ior::{ListenPoint, PolicyValue};

/// Code sets of the connection: [`CodeSets`].
pub const CODE_SETS: u32 = 1;
/// The listen points of the client, for bidirectional connections: a list of [`ListenPoint`].
pub const BI_DIR_IIOP: u32 = 5;
/// Policies of the invocation: a list of [`PolicyValue`]. An [`Expiry`](super::Expiry) has its end times.
pub const INVOCATION_POLICIES: u32 = 7;
/// The CORBA priority of the call, a short.
pub const RT_CORBA_PRIORITY: u32 = 10;
/// The band of CORBA priorities of the connection, two shorts.
pub const RT_CORBA_PRIORITY_RANGE: u32 = 11;
/// A text about an exception, for people: a [`WString`](crate::cdr::WString).
pub const EXCEPTION_DETAIL_MESSAGE: u32 = 14;
/// The time that a request has left when it is sent, in nanoseconds: an unsigned long long. A context of rtorb.
pub const REMAINING_TIME: u32 = RTORB | 1;

/// The size of the data of an [`RT_CORBA_PRIORITY`] context.
pub const PRIORITY_BYTES: usize = 4;

/// The data of an [`RT_CORBA_PRIORITY`] context, in this machine's byte order.
#[inline]
//= RT-CORBA 1.2 §CORBA Priority
//# A CORBA priority travels in the service context RTCorbaPriority, a short in an encapsulation.
pub fn priority(priority: i16) -> [u8; PRIORITY_BYTES] {
    let [first, second] = priority.to_ne_bytes();
    [ByteOrder::NATIVE.flag(), 0, first, second]
}

/// Decodes the data of an [`RT_CORBA_PRIORITY`] context.
///
/// # Errors
/// When the data is malformed.
#[inline]
pub fn decode_priority(data: &[u8]) -> Result<i16, DecodeError> {
    Reader::encapsulated(data)?.primitive()
}

/// The data of an [`RT_CORBA_PRIORITY_RANGE`] context, in this machine's byte order.
//= RT-CORBA 1.2 §Priority Banded Connections
//# A client tells the server the band of a connection in the service context RTCorbaPriorityRange.
pub fn priority_range(min: i16, max: i16) -> [u8; 6] {
    let [[a, b], [c, d]] = [min.to_ne_bytes(), max.to_ne_bytes()];
    [ByteOrder::NATIVE.flag(), 0, a, b, c, d]
}

/// Decodes the lowest and the highest priority of an [`RT_CORBA_PRIORITY_RANGE`] context.
///
/// # Errors
/// When the data is malformed.
pub fn decode_priority_range(data: &[u8]) -> Result<(i16, i16), DecodeError> {
    let mut r = Reader::encapsulated(data)?;
    Ok((r.primitive()?, r.primitive()?))
}

/// The data of a [`BI_DIR_IIOP`], [`INVOCATION_POLICIES`] or [`EXCEPTION_DETAIL_MESSAGE`] context.
///
/// # Errors
/// When the value cannot be sent, or would be too large.
pub fn to_data<T: Encode>(value: &T) -> Result<Vec<u8>, EncodeError> {
    encapsulate(|w| value.encode(w))
}

/// Decodes the data of a [`BI_DIR_IIOP`], [`INVOCATION_POLICIES`] or [`EXCEPTION_DETAIL_MESSAGE`] context.
///
/// # Errors
/// When the data is malformed.
pub fn from_data<T: Decode>(data: &[u8]) -> Result<T, DecodeError> {
    decode_encapsulated(data)
}

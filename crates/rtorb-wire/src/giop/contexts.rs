//! The service contexts that the ORB understands: what their data says.

use crate::cdr::{ByteOrder, WString, encapsulate};
use crate::{Decode, DecodeError, Encode, EncodeError, Reader};

pub use crate::code_sets::CodeSets;
pub use crate::ior::{ListenPoint, PolicyValue};

/// Code sets of the connection: [`CodeSets`].
pub const CODE_SETS: u32 = 1;
/// Where the sender of the connection can be reached: a list of [`ListenPoint`].
pub const BI_DIR_IIOP: u32 = 5;
/// Policies of the invocation: a list of [`PolicyValue`].
pub const INVOCATION_POLICIES: u32 = 7;
/// The CORBA priority of the call, a short.
pub const RT_CORBA_PRIORITY: u32 = 10;
/// The band of CORBA priorities of the connection, two shorts.
pub const RT_CORBA_PRIORITY_RANGE: u32 = 11;
/// What a human should read about an exception.
pub const EXCEPTION_DETAIL_MESSAGE: u32 = 14;

/// Octets of the data of an [`RT_CORBA_PRIORITY`] context.
pub const PRIORITY_OCTETS: usize = 4;

/// The data of an [`RT_CORBA_PRIORITY`] context, in this machine's byte order.
#[inline]
pub fn priority(priority: i16) -> [u8; PRIORITY_OCTETS] {
    let [first, second] = priority.to_ne_bytes();
    [ByteOrder::NATIVE.flag(), 0, first, second]
}

/// Reads the data of an [`RT_CORBA_PRIORITY`] context.
///
/// # Errors
/// When it is no such data.
#[inline]
pub fn decode_priority(data: &[u8]) -> Result<i16, DecodeError> {
    Reader::encapsulated(data)?.primitive()
}

/// The data of an [`RT_CORBA_PRIORITY_RANGE`] context, in this machine's byte order.
pub fn priority_range(min: i16, max: i16) -> [u8; 6] {
    let [[a, b], [c, d]] = [min.to_ne_bytes(), max.to_ne_bytes()];
    [ByteOrder::NATIVE.flag(), 0, a, b, c, d]
}

/// Reads the least and the largest priority of an [`RT_CORBA_PRIORITY_RANGE`] context.
///
/// # Errors
/// When it is no such data.
pub fn decode_priority_range(data: &[u8]) -> Result<(i16, i16), DecodeError> {
    let mut r = Reader::encapsulated(data)?;
    Ok((r.primitive()?, r.primitive()?))
}

/// The data of a [`BI_DIR_IIOP`] context.
///
/// # Errors
/// When a host name cannot be sent.
pub fn listen_points(points: &[ListenPoint]) -> Result<Vec<u8>, EncodeError> {
    encapsulate(|w| points.encode(w))
}

/// Reads the data of a [`BI_DIR_IIOP`] context.
///
/// # Errors
/// When it is no such data.
pub fn decode_listen_points(data: &[u8]) -> Result<Vec<ListenPoint>, DecodeError> {
    Decode::decode(&mut Reader::encapsulated(data)?)
}

/// The data of an [`INVOCATION_POLICIES`] context.
///
/// # Errors
/// When it would be too large.
pub fn invocation_policies(policies: &[PolicyValue]) -> Result<Vec<u8>, EncodeError> {
    encapsulate(|w| policies.encode(w))
}

/// Reads the data of an [`INVOCATION_POLICIES`] context.
///
/// # Errors
/// When it is no such data.
pub fn decode_invocation_policies(data: &[u8]) -> Result<Vec<PolicyValue>, DecodeError> {
    Decode::decode(&mut Reader::encapsulated(data)?)
}

/// The data of an [`EXCEPTION_DETAIL_MESSAGE`] context.
///
/// # Errors
/// When the text holds a zero character.
pub fn exception_detail(text: &WString) -> Result<Vec<u8>, EncodeError> {
    encapsulate(|w| text.encode(w))
}

/// Reads the data of an [`EXCEPTION_DETAIL_MESSAGE`] context.
///
/// # Errors
/// When it is no such data.
pub fn decode_exception_detail(data: &[u8]) -> Result<String, DecodeError> {
    WString::decode(&mut Reader::encapsulated(data)?).map(|text| text.0)
}

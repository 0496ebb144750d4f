//! The service contexts that the ORB understands: what their data says.

use crate::cdr::{ByteOrder, WString};
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

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

/// The transmission code sets of a connection, as numbers of the OSF registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSets {
    /// Of `char` and `string`.
    pub char_data: u32,
    /// Of `wchar` and `wstring`.
    pub wchar_data: u32,
}

impl CodeSets {
    /// The data of a [`CODE_SETS`] context, in this machine's byte order.
    pub fn to_data(self) -> [u8; 12] {
        let [a, b, c, d] = self.char_data.to_ne_bytes();
        let [e, f, g, h] = self.wchar_data.to_ne_bytes();
        [ByteOrder::NATIVE.flag(), 0, 0, 0, a, b, c, d, e, f, g, h]
    }

    /// Reads the data of a [`CODE_SETS`] context.
    ///
    /// # Errors
    /// When it is no such data.
    pub fn from_data(data: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::encapsulated(data)?;
        Ok(Self {
            char_data: r.primitive()?,
            wchar_data: r.primitive()?,
        })
    }
}

/// Where an ORB accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenPoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Encode for ListenPoint {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.host.encode(w)?;
        self.port.encode(w)
    }
}

impl Decode for ListenPoint {
    const OCTETS_MIN: usize = 6;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            host: String::decode(r)?,
            port: r.primitive()?,
        })
    }
}

/// A policy and its value, as [`INVOCATION_POLICIES`] and the policies of a reference hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyValue {
    /// Which policy.
    pub policy_type: u32,
    /// Its value's encapsulation.
    pub value: Vec<u8>,
}

impl Encode for PolicyValue {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.policy_type.encode(w)?;
        self.value.encode(w)
    }
}

impl Decode for PolicyValue {
    const OCTETS_MIN: usize = 8;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            policy_type: r.primitive()?,
            value: r.octets()?.to_vec(),
        })
    }
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

/// Most octets of an encapsulation that is made on its own.
const ENCAPSULATION_OCTETS_MAX: usize = 1 << 24;

/// The octets of an encapsulation, byte order first, that `content` writes.
pub(crate) fn encapsulate<'a>(
    content: impl FnOnce(&mut Writer<'a>) -> Result<(), EncodeError>,
) -> Result<Vec<u8>, EncodeError> {
    let mut w = Writer::new(Vec::new(), ENCAPSULATION_OCTETS_MAX);
    w.primitive(w.order().flag())?;
    content(&mut w)?;
    Ok(w.to_octets())
}

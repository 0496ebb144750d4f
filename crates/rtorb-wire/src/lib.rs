//! CORBA bytes and messages, and nothing else: what a peer sends is decoded, what it shall receive is encoded.
//!
//! The crate opens nothing, reads nothing, waits for nothing and does not know the time: octets go in, messages come
//! out. Whoever moves the octets (the crate `rtorb`, or a test) drives it. Octets from a peer are never trusted: a
//! decoder answers a [`DecodeError`], it never panics and never reserves memory that the octets at hand do not justify.
#![forbid(unsafe_code)]

pub mod any;
pub mod cdr;
pub mod code_sets;
mod error;
pub mod giop;
pub mod ior;
pub mod type_code;
pub mod url;
pub mod valuetype;

pub use any::{Any, Typed};
pub use cdr::{ByteOrder, Decode, Encode, FixedLayout, Reader, Writer};
pub use error::{DecodeError, EncodeError};
pub use ior::Ior;
pub use type_code::TypeCode;
pub use valuetype::ValueType;

#[doc(hidden)]
pub use arrayvec;

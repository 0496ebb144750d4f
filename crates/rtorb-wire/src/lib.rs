//! CORBA data and messages: encodes what is sent, and decodes what a peer sends.
//!
//! The crate does no I/O, does not wait and knows no time: bytes go in, messages come out. The crate `rtorb`, or a test,
//! moves the bytes and drives it. It never trusts bytes from a peer: a decoder returns a [`DecodeError`], never panics, and
//! never reserves memory that the received bytes do not justify.
//!
//! * [`cdr`]: values as bytes, in both byte orders;
//! * [`giop`]: messages, their headers, their bodies and service contexts;
//! * [`connection`]: both ends of a connection, without I/O;
//! * [`ior`] and [`url`]: references to objects, in a message and as text;
//! * [`type_code`] and [`any`]: values that carry their type;
//! * [`code_sets`]: negotiation of character sets;
//! * [`exception`]: system exceptions.
//!
//! ```
//! use rtorb_wire::giop::{self, Header, RequestHeader, RequestStart, Response, Version};
//! use rtorb_wire::Writer;
//!
//! let mut w = Writer::new(Vec::new(), 1024);
//! let start = RequestStart {
//!     request_id: 2,
//!     response: Response::FromTarget,
//!     object_key: b"clock",
//!     operation: "ticks",
//!     contexts: &[],
//! };
//! giop::begin_request(&mut w, Version::V1_2, &start)?;
//! giop::encode_body(&mut w, Version::V1_2, |w| w.primitive(7i32))?;
//! giop::end_message(&mut w)?;
//! let message = w.to_bytes();
//!
//! let header = Header::parse(&message, 1024)?.expect("a whole header");
//! let mut r = header.reader(&message);
//! let request = RequestHeader::decode(&mut r)?;
//! assert_eq!(request.operation, b"ticks");
//! assert_eq!(r.primitive::<i32>()?, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), no_std)]

#[doc(hidden)]
pub extern crate alloc;

pub mod any;
pub mod cdr;
pub mod code_sets;
#[doc(hidden)]
pub mod codegen;
pub mod connection;
mod error;
pub mod exception;
pub mod giop;
pub mod ior;
#[doc(hidden)]
pub mod operation_table;
pub mod type_code;
pub mod url;
pub mod valuetype;
mod version;

pub use any::{Any, Typed};
pub use cdr::{ByteOrder, Decode, Encode, FixedLayout, Reader, Writer};
pub use error::{DecodeError, EncodeError, TextCodeSet};
pub use ior::Ior;
pub use type_code::TypeCode;
pub use valuetype::ValueType;

#[doc(hidden)]
pub use arrayvec;

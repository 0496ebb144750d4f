//! CORBA bytes and messages, and nothing else: what a peer sends is decoded, what it shall receive is encoded.
//!
//! The crate opens nothing, reads nothing, waits for nothing and does not know the time: octets go in, messages come
//! out. Whoever moves the octets (the crate `rtorb`, or a test) drives it. Octets from a peer are never trusted: a
//! decoder answers a [`DecodeError`], it never panics and never reserves memory that the octets at hand do not justify.
//!
//! * [`cdr`]: values as octets, in both byte orders;
//! * [`giop`]: messages, their headers, their parts and what travels beside the arguments;
//! * [`connection`]: both ends of a connection, without I/O;
//! * [`ior`] and [`url`]: references to objects, in a message and as text;
//! * [`type_code`] and [`any`]: values that say what they are;
//! * [`code_sets`]: which characters two sides have in common.
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
//! let message = w.to_octets();
//!
//! let header = Header::parse(&message, 1024)?.expect("a whole header");
//! let mut r = header.reader(&message);
//! let request = RequestHeader::decode(&mut r)?;
//! assert_eq!(request.operation, b"ticks");
//! assert_eq!(r.primitive::<i32>()?, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod any;
pub mod cdr;
pub mod code_sets;
pub mod connection;
mod error;
pub mod giop;
pub mod ior;
pub mod type_code;
pub mod url;
pub mod valuetype;
mod version;

pub use any::{Any, Typed};
pub use cdr::{ByteOrder, Decode, Encode, FixedLayout, Reader, Writer};
pub use error::{DecodeError, EncodeError};
pub use ior::Ior;
pub use type_code::TypeCode;
pub use valuetype::ValueType;

#[doc(hidden)]
pub use arrayvec;

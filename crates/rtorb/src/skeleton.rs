//! Servants whose requests are decoded by hand.
//!
//! Generated code calls a servant with values. A servant that needs the bytes of a request, or sends other bytes than values,
//! implements [`ServedBy`] itself, for the reference type of its interface. It reads arguments by [`ServerCall`], and replies by
//! it.
//!
//! ```
//! use rtorb::cdr::Encode;
//! use rtorb::skeleton::{OperationTable, ServedBy, ServerCall, unknown_operation};
//! use rtorb::{Interface, ObjectRef, SystemException};
//!
//! /// A reference to an object with one operation: `octet sum(in OctetSeq all)`. The IDL compiler generates such types too.
//! #[derive(Clone)]
//! struct Adder(ObjectRef);
//!
//! impl Interface for Adder {
//!     type Object = ObjectRef;
//!     const REPOSITORY_ID: &'static str = "IDL:Adder:1.0";
//!     const ANCESTORS: &'static [&'static str] = &[];
//!
//!     fn unchecked_narrow(object: ObjectRef) -> Self {
//!         Self(object)
//!     }
//!
//!     fn as_object(&self) -> &ObjectRef {
//!         &self.0
//!     }
//! }
//!
//! struct Adding;
//!
//! impl ServedBy<Adding> for Adder {
//!     fn find_operation(name: &[u8]) -> Option<usize> {
//!         static TABLE: OperationTable<1, 1, 4> = OperationTable::new(["sum"]);
//!         TABLE.find(name)
//!     }
//!
//!     fn dispatch(
//!         _: &Adding,
//!         operation: usize,
//!         call: &mut ServerCall<'_>,
//!     ) -> Result<(), SystemException> {
//!         match operation {
//!             0 => {
//!                 let sum = call.arguments().octets()?.iter().fold(0, |sum, one| sum ^ one);
//!                 call.reply(|w| sum.encode(w))
//!             }
//!             _ => Err(unknown_operation()),
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = rtorb::Orb::builder().build()?;
//! let adder: Adder = orb.root_poa()?.activate(Adding)?;
//! # let _ = adder;
//! # Ok(())
//! # }
//! ```
//!
//! A skeleton that is to be answered later reads the arguments, and [defers](DeferReply::defer) its reply. The
//! [`Responder`](crate::Responder) goes to the thread that has the result, and the skeleton returns:
//!
//! ```
//! use rtorb::cdr::Encode;
//! use rtorb::skeleton::{DeferReply, ServerCall};
//! use rtorb::{Responder, SystemException};
//! use std::sync::mpsc::Sender;
//!
//! fn sum(later: &Sender<(Vec<u8>, Responder<u8>)>, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
//!     let all = call.arguments().octets()?.to_vec();
//!     let responder = call.defer(|sum: Result<u8, SystemException>, call| {
//!         let sum = sum?;
//!         call.reply(|w| sum.encode(w))
//!     })?;
//!     // If no thread receives it, it is dropped, and the client gets NO_RESPONSE.
//!     let _ = later.send((all, responder));
//!     Ok(())
//! }
//! # let _ = sum;
//! ```

pub use crate::poa::ServedBy;
pub use crate::server::{DeferReply, PassThrough, ServerCall, WriteResult};
pub use rtorb_core::unknown_operation;
#[doc(inline)]
pub use rtorb_wire::operation_table::OperationTable;

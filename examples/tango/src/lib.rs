//! Device servers of the Tango control system: its interfaces, and what serves a device by them.
//!
//! A device is a [`Class`], which lists attributes and commands, and a [`Model`], on which they act. A [`DeviceServer`] gives it
//! the name by which clients of Tango find it without a database. `motor` is such a device.
#![forbid(unsafe_code)]

mod admin;
mod attribute;
mod black_box;
mod class;
mod command;
mod conversions;
mod device;
mod failure;
mod interfaces;
pub mod motor;
mod server;
mod stubs;
mod value;

pub use attribute::Attribute;
pub use class::{Class, Model};
pub use command::Command;
pub use failure::failed;
pub use server::{DeviceServer, ServerError};
pub use stubs::tango;
pub use value::{AttributeType, Value};

/// The programs of docs/how-to/tango.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/tango.md")]
struct Guide;

//! Values, requests and servants whose types are known only at run time.
//!
//! [`Types`] has types and interfaces: from IDL that is read at run time, from an interface [`repository`], or given by the caller.
//! A [`Value`] has one of these types; [`json`] is its form as text. A [`Request`] calls an operation, and a [`Servant`] carries
//! operations out. A [`Proxy`] passes calls on to another object and records them ([`recording`]), and a [`stand_in`] answers from
//! a table or a recording. [`inspect`] shows the contents of a reference, and whether its object replies.
//!
//! ```no_run
//! use std::sync::Arc;
//! use rtorb_dynamic::{Request, Types};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = rtorb::Orb::builder().build()?;
//! let object = orb.string_to_object("corbaloc::plant:2809/Valve")?;
//! let mut types = Types::default();
//! types.add_text("valve.idl", "interface Valve { long turn(in long degrees); };")?;
//! let types = Arc::new(types);
//! let turn = types.interface("Valve").and_then(|it| it.operation("turn")).ok_or("no operation")?;
//! let inputs = turn.inputs_from_json(&types, &[json!(90)])?;
//! match Request::new(&object, &turn, &types, inputs)?.invoke() {
//!     Ok(results) => println!("{}", turn.results_to_json(&types, &results)?),
//!     Err(failure) => println!("{}", failure.to_json(&types)?),
//! }
//! # Ok(())
//! # }
//! ```
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![forbid(unsafe_code)]

mod call;
pub mod copied;
mod deferring;
mod describe;
pub mod inspect;
pub mod interface;
pub mod json;
mod own_reference;
mod proxy;
pub mod recording;
pub mod repository;
mod request;
pub mod search;
mod servant;
pub mod stand_in;
pub mod types;
pub mod walk;

pub use call::ArgumentError;
pub use deferring::{DeferrableReply, DeferringServant, DynamicResponder, activate_deferring};
pub use interface::{Interface, Operation};
pub use own_reference::{OwnReference, standing_for};
pub use proxy::Proxy;
pub use request::{Deferred, Failure, Request, Results};
pub use rtorb::any::Value;
pub use servant::{Servant, activate, activate_with_id};
pub use types::Types;

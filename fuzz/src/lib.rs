//! The fuzz targets: functions that pass arbitrary bytes to a decoder, to a whole server or to a whole client.
//!
//! No target may panic or hang on any input. `cargo xtask fuzz` runs them under libFuzzer, and a test runs them on the stored inputs.
#![forbid(unsafe_code)]

mod client;
#[path = "../../crates/rtorb-wire/tests/decoders/mod.rs"]
mod decoders;
mod events;
mod messages;
mod ring;
mod server;
mod store;
mod text;

pub use messages::{Draws, mutate};

/// A function that takes arbitrary bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also that of the folders with its inputs.
    pub name: &'static str,
    /// Passes one input to the code under test.
    pub run: fn(&[u8]),
    /// True if inputs are GIOP messages in a row, so that [`mutate`] is of use.
    pub has_messages: bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target::of_bytes("agent", text::agent),
    Target::of_bytes("any", decoders::any),
    Target::of_messages("client", client::call),
    Target::of_bytes("events", events::subscribe),
    Target::of_messages("giop", decoders::giop),
    Target::of_bytes("idl", text::idl),
    Target::of_bytes("json", text::json),
    Target::of_bytes("names", text::names),
    Target::of_messages("parts", decoders::parts),
    Target::of_bytes("profile", text::profile),
    Target::of_bytes("reference", decoders::reference),
    Target::of_bytes("ring", ring::run),
    Target::of_messages("server", server::serve),
    Target::of_bytes("store", store::open),
    Target::of_messages("stream", decoders::stream),
    Target::of_bytes("system", text::system),
    Target::of_bytes("text", decoders::text),
    Target::of_bytes("values", decoders::values),
];

impl Target {
    const fn of_bytes(name: &'static str, run: fn(&[u8])) -> Self {
        Self {
            name,
            run,
            has_messages: false,
        }
    }

    const fn of_messages(name: &'static str, run: fn(&[u8])) -> Self {
        Self {
            name,
            run,
            has_messages: true,
        }
    }

    /// Returns the target with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.iter().find(|target| target.name == name).copied()
    }
}

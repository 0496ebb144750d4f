//! The messages of a connection, in fragments or not, put together within bounds.
#![no_main]

#[path = "../../crates/rtorb-wire/tests/decoders/mod.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| decoders::stream(octets));

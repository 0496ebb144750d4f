//! One GIOP message, and what is in it.
#![no_main]

#[path = "../../crates/rtorb-wire/tests/decoders/mod.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| decoders::giop(octets));

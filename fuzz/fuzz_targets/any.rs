//! TypeCodes and anys.
#![no_main]

#[path = "../../crates/rtorb-wire/tests/decoders/mod.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| decoders::any(octets));

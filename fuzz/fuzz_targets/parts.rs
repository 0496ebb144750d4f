//! A message taken apart and put together again.
#![no_main]

#[path = "../../crates/rtorb-wire/tests/decoders/mod.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| decoders::parts(octets));

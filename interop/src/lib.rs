//! The other parties of the interoperability tests: peers built of other ORBs, children that end, a recorder.
//!
//! omniORB comes from Debian and is needed by the gate; JacORB comes from Maven Central and is extra. Where a peer is
//! missing, a test says how to get it and passes, unless `RTORB_REQUIRE_PEERS=1` says that it must be there.
#![forbid(unsafe_code)]

pub mod asleep;
pub mod clockwork;
pub mod fake;
pub mod good;
pub mod jacorb;
pub mod names;
pub mod omniorb;
pub mod ours;
pub mod raw;
pub mod recorder;
pub mod relay;
pub mod running;
pub mod scheduling;
pub mod scratch;
pub mod servants;
pub mod tao;

mod make;

/// What the IDL of the tests becomes.
pub mod stubs {
    rtorb::include_idl!("atlas");
    rtorb::include_idl!("clockwork");
    rtorb::include_idl!("cubit");
    rtorb::include_idl!("exchange");
    rtorb::include_idl!("relay");
}

use std::env;
use std::io::Write;
use std::thread;

/// Says that the running test was skipped for want of something, and how to enable it.
///
/// It is said past the capture of the test runner: who runs the tests shall see it.
///
/// # Panics
///
/// `RTORB_REQUIRE_PEERS=1` is set.
pub fn skip(why: &str) {
    assert!(
        env::var_os("RTORB_REQUIRE_PEERS").is_none_or(|v| v != "1"),
        "required by RTORB_REQUIRE_PEERS=1: {why}"
    );
    let thread = thread::current();
    let line = format!(
        "\nskipped: {why} (test {})\n",
        thread.name().unwrap_or("without a name")
    );
    // One write, so that tests beside this one do not write in between. Without standard error, nobody looks.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

//! Generated code as in an application. The tests of this package call it.
//!
//! The lints are those of a strict application. Generated code must cause no warnings under them.
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    nonstandard_style,
    clippy::pedantic,
    clippy::unwrap_used
)]

rtorb::include_idl!("echo");
rtorb::include_idl!("inheritance");
rtorb::include_idl!("failures");
rtorb::include_idl!("clockwork");

/// The IDL of the back end's snapshots. It only has to compile.
pub mod snapshots {
    rtorb::include_idl!("constants");
    rtorb::include_idl!("documentation");
    rtorb::include_idl!("interfaces");
    rtorb::include_idl!("names");
    rtorb::include_idl!("nested");
    rtorb::include_idl!("recursion");
    rtorb::include_idl!("timing");
    rtorb::include_idl!("unions");
    rtorb::include_idl!("values");
    rtorb::include_idl!("valuetypes");
}

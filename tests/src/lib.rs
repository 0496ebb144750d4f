//! Generated code as an application has it, for the tests beside it to call through.
//!
//! The lints are those of a strict application: what is generated has to keep quiet under them.
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

/// The IDL of the back end's snapshots: that it compiles is what matters.
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

/// The programs on the front page of `rtorb`'s documentation.
#[cfg(doctest)]
#[doc = include_str!("../../crates/rtorb/src/lib.md")]
struct FrontPage;

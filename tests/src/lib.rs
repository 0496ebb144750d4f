//! Support for tests that make real calls: servants, clients and servers that send raw messages, fake servers, other ORBs, and the
//! code that IDL generates.
//!
//! The lints are those of a strict application: generated code must not trigger them.
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    nonstandard_style,
    clippy::unwrap_used
)]

pub mod alone;
pub mod asleep;
pub mod clockwork;
pub mod fake;
pub mod faulty_link;
pub mod good;
pub mod ledger;
pub mod loopback;
pub mod ours;
pub mod pages;
pub mod passed_sockets;
pub mod peers;
pub mod raw;
pub mod recorder;
pub mod relay;
pub mod running;
pub mod scheduling;
pub mod scratch;
mod secret;
pub mod servants;
pub mod server_process;

pub use generated::*;

/// Includes generated code, which must cause none of these lints.
macro_rules! generated_code {
    ($($(#[$doc:meta])* $visibility:vis mod $name:ident { $($idl:literal)* })*) => {$(
        $(#[$doc])*
        #[deny(
            clippy::pedantic,
            elided_lifetimes_in_paths,
            explicit_outlives_requirements,
            let_underscore_drop,
            missing_copy_implementations,
            missing_debug_implementations,
            redundant_lifetimes,
            single_use_lifetimes,
            trivial_casts,
            trivial_numeric_casts,
            unit_bindings,
            unnameable_types,
            unused_import_braces,
            unused_lifetimes,
            variant_size_differences
        )]
        $visibility mod $name {
            $(rtorb::include_idl!($idl);)*
        }
    )*};
}

generated_code! {
    /// The generated code that the tests of the mapping call through.
    mod generated {
        "echo"
        "inheritance"
        "failures"
        "clockwork"
        "ledger"
        "harbour"
        "crane"
    }

    /// Names that clash with those of CORBA Messaging. They only have to compile.
    pub mod ami_names { "stocks" }

    /// The IDL of the back end's snapshots. It only has to compile.
    pub mod snapshots {
        "abstract_interfaces"
        "bits"
        "chains"
        "constants"
        "context"
        "deep"
        "documentation"
        "escapes"
        "interfaces"
        "maps"
        "names"
        "nested"
        "optional"
        "recursion"
        "templates"
        "timing"
        "unions"
        "value_forms"
        "values"
        "valuetypes"
    }
}

/// The generated code of the servants of this crate.
pub mod stubs {
    pub use super::generated::{harbour, ledgers, timing};

    rtorb::include_idl!("atlas");
    rtorb::include_idl!("cubit");
    rtorb::include_idl!("exchange");
    rtorb::include_idl!("greeter");
    rtorb::include_idl!("matrix");
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

/// The Rust code of pages, as doc tests: the front page of `rtorb`'s documentation, and pages of the book.
#[cfg(doctest)]
mod doc_pages {
    #[doc = include_str!("../../crates/rtorb/src/lib.md")]
    struct FrontPage;

    #[doc = include_str!("../../docs/how-to/distributable-threads.md")]
    struct DistributableThreads;

    #[doc = include_str!("../../docs/how-to/network-priority.md")]
    struct NetworkPriority;

    #[doc = include_str!("../../docs/how-to/real-time.md")]
    struct RealTime;

    #[doc = include_str!("../../docs/how-to/scheduling.md")]
    struct Scheduling;

    #[doc = include_str!("../../docs/reference/subscriptions.md")]
    struct Subscriptions;
}

//! Says what another system than Linux lacks, before the compiler names hundreds of things that it does not find.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "linux" {
        println!(
            "cargo::error=rtorb-os has no host module for {system}: docs/reference/portability.md lists what such a module needs (threads with \
             FIFO priorities, locks that inherit priority, a monotonic clock, waits on words). rtorb-wire and rtorb-embedded need no \
             host"
        );
    }
}

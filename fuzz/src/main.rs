//! The libFuzzer program: runs the target that the environment names. `cargo xtask fuzz` builds and starts it.
#![no_main]

use std::env;
use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rtorb_fuzz::{Target, mutate};

/// The target of this process.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = env::var("RTORB_FUZZ_TARGET").expect("RTORB_FUZZ_TARGET names a target");
    Target::named(&name).unwrap_or_else(|| panic!("no target is called {name:?}"))
});

fuzz_target!(|input: &[u8]| (TARGET.run)(input));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if TARGET.has_messages {
        mutate(data, size, max_size, seed, fuzzer_mutate)
    } else {
        fuzzer_mutate(data, size, max_size)
    }
});

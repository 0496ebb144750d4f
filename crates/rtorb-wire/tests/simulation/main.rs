//! Two engines of a connection, joined in memory on virtual time: `cargo xtask simulate` runs many seeds.
//!
//! A seed chooses everything: versions, byte orders, fragments, how bytes are split and delayed, resets, half-closes,
//! deadlines. After each step, the calls are checked against what the server carried out.

mod calls;
mod client;
mod link;
mod random;
mod server;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use world::{Tally, World};

/// `RTORB_SIMULATE_SEEDS` seeds, 300 by default, from `RTORB_SIMULATE_FROM` or the seed of all random tests.
#[test]
fn every_call_has_one_truthful_outcome() {
    let seeds = number("RTORB_SIMULATE_SEEDS").unwrap_or(300);
    let from = number("RTORB_SIMULATE_FROM")
        .or(number("PROPTEST_RNG_SEED"))
        .unwrap_or(0);
    let mut tally = Tally::default();
    let mut failures = 0;
    let mut hash = 0u64;
    for seed in (0..seeds).map(|n| from.wrapping_add(n)) {
        let run = catch_unwind(AssertUnwindSafe(|| World::new(seed).run(&mut tally)));
        match run {
            Ok(of_seed) => hash = hash.rotate_left(5) ^ of_seed,
            Err(_) => {
                failures += 1;
                eprintln!("seed {seed} fails: cargo xtask simulate --seeds 1 --from {seed}");
            }
        }
        assert!(failures < 10, "ten seeds failed");
    }
    println!("{seeds} seeds from {from}, {failures} failures, hash {hash:016x}");
    println!("{tally:?}");
    assert_eq!(failures, 0);
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

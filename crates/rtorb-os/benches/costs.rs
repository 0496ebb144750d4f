//! What the primitives cost here without contention, and a hand-over between two threads: medians in nanoseconds.
//!
//! `cargo bench -p rtorb-os`. On a shared or idle machine the hand-overs tell more of the machine's waking up than of this code.

use rtorb_os::clock::monotonic_ns;
use rtorb_os::ring::Ring;
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_os::slab::Slab;
use rtorb_os::sync::{CeilingMutex, Condvar, Mutex};
use rtorb_os::thread::{ThreadConfig, spawn};
use std::hint::black_box;

fn main() {
    let mutex = Mutex::new(0u64);
    report("rtorb Mutex lock, unlock", 1_000, || *mutex.lock() += 1);
    let plain = std::sync::Mutex::new(0u64);
    report("std Mutex lock, unlock", 1_000, || {
        *plain.lock().expect("no panic") += 1;
    });
    let changed = Condvar::new();
    report("notify_one that nobody waits for", 1_000, || {
        changed.notify_one(&mutex)
    });
    let ring = Ring::new(64);
    report("ring push, pop", 1_000, || {
        let _ = black_box(ring.push(1));
        black_box(ring.pop());
    });
    let ceiling = CeilingMutex::new(20, 0u64);
    let config = ThreadConfig {
        policy: Some(SchedPolicy::Fifo(10)),
        ..ThreadConfig::default()
    };
    let raised = spawn("ceiling", &config, move || {
        report("ceiling lock, unlock", 100, || {
            *ceiling.lock().expect("below") += 1;
        });
        apply_policy(SchedPolicy::Other)
    });
    match raised {
        Ok(thread) => drop(thread.join()),
        Err(refused) => println!("ceiling: {refused}"),
    }
    longest_slab_insert();
    hand_over_by_condvar();
    hand_over_by_ring();
}

/// The longest insert of a million, of which each is timed in several rounds: the shortest time counts, without interruptions.
fn longest_slab_insert() {
    const ROUNDS: usize = 9;
    const INSERTS: usize = 1_000_000;
    let mut best_ns = vec![u64::MAX; INSERTS];
    for _ in 0..ROUNDS {
        let slab = Slab::new(INSERTS);
        for (number, best_ns) in best_ns.iter_mut().enumerate() {
            let begin_ns = monotonic_ns();
            black_box(slab.insert([number; 10]));
            *best_ns = (monotonic_ns() - begin_ns).min(*best_ns);
        }
    }
    let longest_ns = best_ns.iter().max().copied().unwrap_or_default();
    println!("{:36} {longest_ns:8}", "slab insert, longest of 1,000,000");
}

fn hand_over_by_condvar() {
    const TURNS: u64 = 20_000;
    let (turn, changed) = (Mutex::new(0u64), Condvar::new());
    let play = |parity: u64| {
        for _ in 0..TURNS / 2 {
            let mut now = turn.lock();
            while *now % 2 != parity {
                changed.wait(&mut now);
            }
            *now += 1;
            changed.notify_one(&turn);
        }
    };
    let begin_ns = monotonic_ns();
    std::thread::scope(|scope| {
        scope.spawn(|| play(0));
        scope.spawn(|| play(1));
    });
    println!(
        "{:36} {:8}",
        "condvar hand-over (mean)",
        (monotonic_ns() - begin_ns) / TURNS
    );
}

fn hand_over_by_ring() {
    const TURNS: u64 = 20_000;
    let (there, back) = (Ring::new(1), Ring::new(1));
    let begin_ns = monotonic_ns();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(value) = there.pop_until(None) {
                let _ = back.push(value);
            }
        });
        for n in 0..TURNS / 2 {
            let _ = there.push(n);
            let _ = black_box(back.pop_until(None));
        }
        there.close();
    });
    println!(
        "{:36} {:8}",
        "ring hand-over (mean)",
        (monotonic_ns() - begin_ns) / TURNS
    );
}

/// Prints the median of 1,000 rounds of `inner` times `work`, each.
fn report(name: &str, inner: u64, work: impl Fn()) {
    let mut rounds: Vec<u64> = (0..1_000)
        .map(|_| {
            let begin_ns = monotonic_ns();
            (0..inner).for_each(|_| work());
            (monotonic_ns() - begin_ns) * 10 / inner
        })
        .collect();
    rounds.sort_unstable();
    println!("{name:36} {:8.1}", rounds[rounds.len() / 2] as f64 / 10.0);
}

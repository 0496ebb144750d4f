//! A thousand random chains: no run exceeds a bound, and bounds are near what runs reach.

use rtorb_sched::model::{CheckOptions, LatencyBound, Trigger};

use super::super::model::{on_ideal, system};
use super::super::simulator::distributed::Chances;
use super::random::{chain, system_text, tasks};
use super::registers::{Observed, run};

const CHAINS: usize = 1_000;

/// The runs of each chain: the first half with the longest executions.
const RUNS: u64 = 8;

/// The longest latencies that runs of a chain reached, in us, and its bounds.
struct Compared {
    text: String,
    is_exact: bool,
    is_let: bool,
    reached_us: [u64; 2],
    bounds: [LatencyBound; 2],
}

impl Compared {
    /// Returns how much of the bound was reached, in thousandths.
    fn tightness(&self, latency: usize) -> u64 {
        self.reached_us[latency] * 1_000_000 / self.bound_ns(latency)
    }

    fn bound_ns(&self, latency: usize) -> u64 {
        self.bounds[latency].bound_ns.expect("it has a bound")
    }
}

/// Draws a system and compares its chain with runs; `None` if it has no bound.
fn compared(seed: u64) -> Option<Compared> {
    let mut chances = Chances(seed);
    let text = system_text(&mut chances);
    let system = system(&text);
    let options = CheckOptions {
        sensitivity: false,
        ..CheckOptions::default()
    };
    let report = on_ideal(&system, &options);
    let bound = &report.cause_effect_chains[0];
    bound.data_age.bound_ns?;
    let first = system.cause_effect_chains[0].stages[0][0];
    let is_caused = matches!(system.behaviours[first].trigger, Trigger::Sporadic { .. });
    let simulated = chain(&system);
    let mut reached_us = [0; 2];
    for number in 0..RUNS {
        let tasks = tasks(&system, &report, &mut chances);
        let chances = Chances(chances.next());
        let seen: Observed = run(&tasks, &simulated, chances, number < RUNS / 2);
        assert!(!seen.outputs.is_empty(), "{text}");
        reached_us[0] = reached_us[0].max(seen.data_age());
        reached_us[1] = reached_us[1].max(seen.reaction_time(is_caused));
    }
    Some(Compared {
        is_exact: bound.is_exact,
        is_let: simulated.let_periods.is_some(),
        reached_us,
        bounds: [bound.data_age.clone(), bound.reaction_time.clone()],
        text,
    })
}

fn all() -> Vec<Compared> {
    // Some systems are overloaded, or a behaviour may end after its period, so that their chains have no bound.
    let chains: Vec<Compared> = (0..4 * CHAINS as u64)
        .filter_map(compared)
        .take(CHAINS)
        .collect();
    assert_eq!(chains.len(), CHAINS);
    chains
}

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

#[test]
fn no_run_exceeds_a_bound_and_bounds_are_tight() {
    let chains = all();
    for one in &chains {
        for latency in 0..2 {
            let (reached_ns, bound_ns) = (one.reached_us[latency] * 1_000, one.bound_ns(latency));
            assert!(
                reached_ns <= bound_ns,
                "{latency}: {reached_ns} > {bound_ns}\n{}",
                one.text
            );
            if one.is_exact {
                assert_eq!(reached_ns, bound_ns, "{latency} is exact\n{}", one.text);
            }
            let shares = one.bounds[latency].shares.iter();
            assert_eq!(shares.map(|share| share.ns).sum::<u64>(), bound_ns);
        }
    }
    let exact = chains.iter().filter(|one| one.is_exact).count();
    assert!(exact >= 50, "{exact}");
    for (name, is_let) in [("implicit", false), ("let", true)] {
        for (what, latency) in [("data age", 0), ("reaction time", 1)] {
            let of = chains.iter().filter(|one| one.is_let == is_let);
            let numbers: Vec<u64> = of.map(|one| one.tightness(latency)).collect();
            let (count, median) = (numbers.len(), median(numbers));
            println!(
                "{name}, {what}: {count} chains, median of reached / bound {median} thousandths"
            );
            assert!(count >= 200, "{count}");
            assert!((600..=1_000).contains(&median), "{name}, {what}: {median}");
        }
    }
}

/// A bound without one of its shares is no bound: some run exceeds it, whatever the kind of the share.
#[test]
fn no_kind_of_share_is_superfluous() {
    let mut needed = [0; 3];
    for one in all() {
        for latency in 0..2 {
            for share in &one.bounds[latency].shares {
                let kind = match share.what.split_once(' ') {
                    Some(("input", _)) => 0,
                    Some(("register", _)) => 1,
                    _ => 2,
                };
                let without_ns = one.bound_ns(latency) - share.ns;
                needed[kind] += u32::from(one.reached_us[latency] * 1_000 > without_ns);
            }
        }
    }
    println!("shares without which a run exceeds the bound: {needed:?}");
    assert!(needed.iter().all(|needed| *needed >= 100), "{needed:?}");
}

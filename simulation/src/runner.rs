//! Runs the seeds of systems, each in a process of its own, on all processors.

use crate::calls::threads;
use crate::command::Options;
use crate::found::{FOUND, Found};
use crate::plants::{self, PLANTS};
use crate::process::{self, Child};
use crate::random::Random;
use crate::systems::{self, System};
use crate::world::{self, World};
use rtorb_os::sched::current_affinity;
use std::collections::BTreeMap;
use std::time::Instant;

/// The results of a system's seeds.
#[derive(Debug, Default)]
struct Tally {
    failures: u64,
    /// The lowest seed that fails, and why.
    first: Option<(u64, String)>,
    printed_max: u64,
    steps: u64,
    hash: u64,
}

/// Failures that are printed; the others are counted.
const PRINTED_MAX: u64 = 30;

/// Runs all systems; true if no seed fails.
pub(crate) fn run(options: &Options) -> bool {
    if options.traces {
        world::set_tracing();
    }
    let mut hash = 0u64;
    let mut failures = 0;
    let to = options.from.saturating_add(options.seeds);
    for system in &options.systems {
        let begin = Instant::now();
        let tally = run_system(system, options.from, to, PRINTED_MAX);
        let rate = options.seeds as f64 / begin.elapsed().as_secs_f64();
        println!(
            "{}: {} seeds from {}, {} failures, {rate:.0} seeds a second, {} steps a seed",
            system.name,
            options.seeds,
            options.from,
            tally.failures,
            tally.steps / options.seeds.max(1)
        );
        hash = hash.rotate_left(5) ^ tally.hash;
        failures += tally.failures;
    }
    println!("hash {hash:016x}");
    failures == 0
}

/// Runs the seeds that found bugs, with the bug and without it; true if each fails with it only.
fn replay() -> bool {
    let mut all_found = true;
    for Found {
        system,
        seed,
        plant,
        what,
    } in FOUND
    {
        let system = systems::named(system);
        let fails = || run_system(system, *seed, seed + 1, 0).failures > 0;
        plants::clear();
        let fails_now = fails();
        plants::plant(plant);
        let found = fails() && !fails_now;
        plants::clear();
        println!(
            "{} seed {seed}: {what}: {}",
            system.name,
            if found { "mended" } else { "NOT as it was" }
        );
        all_found &= found;
    }
    all_found
}

/// Runs the system of each planted bug until a seed fails; true if one does for each, within its number of seeds.
pub(crate) fn find_plants() -> bool {
    let mut all_found = replay();
    for plant in PLANTS {
        plants::plant(plant.name);
        let system = systems::named(plant.system);
        const AT_ONCE: u64 = 50;
        let parts = (0..plant.seeds).step_by(AT_ONCE as usize);
        let found = parts
            .map(|from| run_system(system, from, from + AT_ONCE, 0))
            .find(|it| it.failures > 0);
        match found.and_then(|tally| tally.first) {
            Some((seed, why)) => println!("{}: found by seed {seed}: {why}", plant.name),
            None => {
                all_found = false;
                println!("{}: not found in {} seeds", plant.name, plant.seeds);
            }
        }
    }
    all_found
}

fn run_system(system: &'static System, from: u64, to: u64, printed_max: u64) -> Tally {
    let mut free = current_affinity();
    let mut running = BTreeMap::new();
    let mut tally = Tally {
        printed_max,
        ..Tally::default()
    };
    let mut next = from;
    while next < to || !running.is_empty() {
        if next < to
            && let Some(cpu) = free.pop()
        {
            let seed = next;
            let child = Child::fork(cpu, || run_seed(system, seed));
            running.insert(child.number, (child, seed, cpu));
            next += 1;
            continue;
        }
        let (number, has_succeeded) = process::wait();
        if let Some((child, seed, cpu)) = running.remove(&number) {
            free.push(cpu);
            tally.add(system, seed, has_succeeded, &child.output());
        }
    }
    tally
}

impl Tally {
    fn add(&mut self, system: &System, seed: u64, has_succeeded: bool, output: &str) {
        let last = output
            .lines()
            .last()
            .and_then(|line| line.strip_prefix(RESULT));
        let numbers = last.and_then(|line| line.split_once(' '));
        let result = numbers.and_then(|(hash, steps)| {
            Some((
                u64::from_str_radix(hash, 16).ok()?,
                steps.parse::<u64>().ok()?,
            ))
        });
        let (Some((hash, steps)), true) = (result, has_succeeded) else {
            self.failures += 1;
            let why = output.lines().next().unwrap_or("it was killed").to_owned();
            if self.first.as_ref().is_none_or(|(lowest, _)| seed < *lowest) {
                self.first = Some((seed, why));
            }
            if self.failures <= self.printed_max {
                let name = system.name;
                print!("{output}");
                println!(
                    "seed {seed} fails: cargo xtask simulate --system {name} --seeds 1 --from {seed}"
                );
            }
            return;
        };
        if world::is_traced() {
            print!("{output}");
        }
        self.steps += steps;
        // A sum, because seeds end in any order.
        self.hash = self
            .hash
            .wrapping_add((hash ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

const RESULT: &str = "result ";

/// Runs one seed in this process, and prints its result.
fn run_seed(system: &System, seed: u64) {
    let mut random = Random::new(seed);
    let faults = (system.faults)(&mut random);
    rtorb_os::simulation::install(rtorb_os::simulation::Hooks {
        point: || {
            if world::is_simulated() {
                world::point();
            }
        },
        is_planted: plants::is_planted,
    });
    let baton = World::new(random.split(), faults).begin();
    let first = || {
        (system.run)(random);
        world::settle();
    };
    threads::run_first(first, baton);
    let (hash, steps) = world::with(|world| (world.core.hash, world.core.steps));
    println!("{RESULT}{hash:016x} {steps}");
}

//! `cargo xtask simulate`: runs the simulated systems with many seeds, built as a release.
//!
//! Whole ORBs with their threads are systems of the program in `simulation/`, a workspace of its own. Two more are tests: `engines` joins
//! two engines of `rtorb-wire`, and `one-thread` whole ORBs without their threads.

use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use xshell::{Shell, cmd};

/// What to simulate.
#[derive(Args)]
pub(crate) struct Simulation {
    /// The number of seeds of each system.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// A system, several times for several; by default all.
    #[arg(long)]
    system: Vec<System>,
    /// A planted bug, which a seed is to find.
    #[arg(long)]
    plant: Option<String>,
    /// Lists the planted bugs.
    #[arg(long)]
    plants: bool,
    /// Runs each planted bug until a seed finds it.
    #[arg(long, conflicts_with_all = ["plant", "plants"])]
    find_plants: bool,
}

/// What runs with a seed, in the order of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum System {
    Calls,
    Lanes,
    Events,
    Naming,
    Gateways,
    Started,
    Callbacks,
    Held,
    Budgets,
    Hostile,
    Engines,
    OneThread,
}

impl System {
    /// The test that it is; those of `simulation/` are none.
    fn test(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Calls
            | Self::Lanes
            | Self::Events
            | Self::Naming
            | Self::Gateways
            | Self::Started
            | Self::Callbacks
            | Self::Held
            | Self::Budgets
            | Self::Hostile => None,
            Self::Engines => Some(&["-p", "rtorb-wire", "--test", "simulation"]),
            Self::OneThread => Some(&["-p", "rtorb", "--lib", "tests::randomly"]),
        }
    }

    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Runs the systems. Each prints the seeds that fail; the last line is one hash of all.
pub(crate) fn run(sh: &Shell, simulation: &Simulation) -> anyhow::Result<()> {
    if simulation.plants {
        return program(sh, &["--plants"]).map(drop);
    }
    if simulation.find_plants {
        return program(sh, &["--find-plants"]).map(drop);
    }
    let is_chosen = |system: &System| match &*simulation.system {
        [] => simulation.plant.is_none() || system.test().is_none(),
        chosen => chosen.contains(system),
    };
    let mut hash = 0u64;
    let mut failed = Vec::new();
    for system in System::value_variants().iter().filter(|it| is_chosen(it)) {
        let name = system.name();
        let run = match system.test() {
            Some(test) => run_test(sh, &name, test, simulation),
            None => run_with_threads(sh, &name, simulation),
        };
        match run {
            Ok(of_system) => hash = hash.rotate_left(5) ^ of_system,
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    println!("hash {hash:016x}");
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

fn run_with_threads(sh: &Shell, name: &str, simulation: &Simulation) -> anyhow::Result<u64> {
    let (seeds, from) = (simulation.seeds.to_string(), simulation.from.to_string());
    let mut arguments = vec!["--system", name, "--seeds", &seeds, "--from", &from];
    if let Some(plant) = &simulation.plant {
        arguments.extend(["--plant", plant]);
    }
    let output = program(sh, &arguments)?;
    hash_of(&output)
}

/// Runs the program in `simulation/`, and prints its output but for the hash.
fn program(sh: &Shell, arguments: &[&str]) -> anyhow::Result<String> {
    // Its own folder has the flags of its build.
    let _folder = sh.push_dir("simulation");
    let run = cmd!(sh, "cargo run --quiet --release -- {arguments...}");
    let output = run.quiet().ignore_status().output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in text.lines().filter(|line| !line.starts_with(HASH)) {
        println!("{line}");
    }
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    ensure!(
        output.status.success(),
        "a seed that failed is printed above"
    );
    Ok(text)
}

fn run_test(sh: &Shell, name: &str, test: &[&str], simulation: &Simulation) -> anyhow::Result<u64> {
    cmd!(sh, "cargo test --quiet --release --no-run {test...}")
        .quiet()
        .run()?;
    let begin = Instant::now();
    let run = cmd!(sh, "cargo test --quiet --release {test...} -- --nocapture").quiet();
    let run = run.env("RTORB_SIMULATE_SEEDS", simulation.seeds.to_string());
    let run = run.env("RTORB_SIMULATE_FROM", simulation.from.to_string());
    let output = run.read().context("a seed that failed is printed above")?;
    let (seeds, rate) = (
        simulation.seeds,
        simulation.seeds as f64 / begin.elapsed().as_secs_f64(),
    );
    let from = simulation.from;
    println!("{name}: {seeds} seeds from {from}, 0 failures, {rate:.0} seeds a second");
    hash_of(&output)
}

/// The hash that the output of a system ends with.
fn hash_of(output: &str) -> anyhow::Result<u64> {
    let mut words = output.split_whitespace();
    words
        .find(|word| *word == HASH)
        .context("the system prints a hash")?;
    let hash = words.next().context("the system prints a hash")?;
    Ok(u64::from_str_radix(hash, 16)?)
}

const HASH: &str = "hash";

//! `cargo xtask`: the checks of the workspace's own rules, and what the gate and a release make.
#![forbid(unsafe_code)]

mod book;
mod busy;
mod ci;
mod deb;
mod debian;
mod draw;
mod elf;
mod features;
mod fmt;
mod fuzz;
mod image;
mod instructions;
mod layers;
mod metadata;
mod modules;
mod package;
mod pictures;
mod portability;
mod python;
mod release;
mod root;
mod rtos;
mod sanitize;
mod semver;
mod simulate;
mod sources;
mod spec;
mod static_build;
mod supervised;
mod support_api;
mod test_files;
mod type_names;
mod valgrind;
mod zenoh;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use xshell::Shell;

/// Checks the workspace's own rules, and makes what the gate and a release need.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Makes a site of the pages below docs/, and checks their links and their code.
    Book,
    /// Runs all tests beside twice as many busy threads as there are CPUs.
    Busy(busy::Rounds),
    /// Runs what the gate runs, once the peers are installed.
    Ci,
    /// Makes a Debian package of the command with its services, installs it, runs them, and purges it.
    Deb(static_build::Build),
    /// Runs the tests with a new seed, so that random tests draw new cases.
    Draw {
        /// The arguments of `cargo test`; by default `--workspace`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Checks that rtorb-services compiles with each of its features alone, and with none, and the command without the laboratory.
    Features,
    /// Checks the layout of all Rust sources.
    Fmt,
    /// Runs the fuzz targets for a bounded time. A failing input is stored in fuzz/failures/.
    Fuzz {
        /// The seconds of the whole run, which all targets share.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        /// The only target to run.
        #[arg(long)]
        target: Option<String>,
        /// Adds inputs that reach new code to fuzz/corpus/.
        #[arg(long = "keep")]
        keeps: bool,
    },
    /// Makes an image with a naming service, unpacks it, and runs it.
    Image(static_build::Build),
    /// Installs a Debian package and runs its services, in namespaces that `deb` made.
    #[command(hide = true)]
    Installed { package: PathBuf, folder: PathBuf },
    /// Counts the instructions of a call, and compares them with instructions.toml.
    Instructions {
        /// Prints the counts as JSON.
        #[arg(long)]
        json: bool,
        /// Writes the counts to instructions.toml.
        #[arg(long, conflicts_with = "json")]
        update: bool,
    },
    /// Checks which crate may use which, and what a crate may not use.
    Layers,
    /// Packages the crates as they would be published, and builds a project with the packages.
    Package,
    /// Makes the pictures of the README from a report.
    Pictures {
        /// The folder of the report; without it, this host is measured first.
        report: Option<PathBuf>,
    },
    /// Checks the portable crates for other systems, and compares the result with docs/reference/portability.md.
    Portability,
    /// Makes all that a release publishes, and checks it: packages for cargo and Debian, wheel, image, site. Publishes nothing.
    Release(static_build::Build),
    /// Builds the Python package, and runs its tests.
    Python,
    /// Builds the guests that run real-time kernels.
    Rtos,
    /// Runs tests under a sanitizer, with the stable compiler.
    Sanitize {
        /// The sanitizer.
        #[arg(long, value_enum, default_value = "thread")]
        sanitizer: sanitize::Sanitizer,
        /// The packages; by default those whose threads share memory.
        #[arg(short, long = "package")]
        packages: Vec<String>,
        /// The tests' names or parts of them.
        names: Vec<String>,
    },
    /// Compares the public items of the libraries with those of the last release.
    Semver {
        /// The revision of that release.
        #[arg(long, default_value = semver::BASELINE)]
        baseline: String,
    },
    /// Runs clients and servers on virtual time, over a simulated network, with many seeds.
    Simulate(simulate::Simulation),
    /// Lists the clauses of the standards that the code cites: kept, tested, left out.
    Spec {
        /// Prints the list as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Builds `rtorb` as one file that runs on a board with nothing else.
    Static(static_build::Build),
    /// Unpacks an image and runs its program, in namespaces that `image` made.
    #[command(hide = true)]
    Unpacked { image: PathBuf, folder: PathBuf },
    /// Runs the tests of federations over Zenoh.
    Zenoh,
}

fn main() -> anyhow::Result<()> {
    let sh = &workspace()?;
    match Task::parse() {
        Task::Book => book::run(sh),
        Task::Busy(rounds) => busy::run(sh, &rounds),
        Task::Ci => ci::run(sh),
        Task::Deb(build) => deb::run(sh, &build).map(drop),
        Task::Draw { arguments } => draw::run(sh, arguments),
        Task::Features => features::run(sh),
        Task::Fmt => fmt::run(sh),
        Task::Fuzz {
            seconds,
            target,
            keeps,
        } => fuzz::run(
            sh,
            &fuzz::Options {
                seconds,
                target,
                keeps,
            },
        ),
        Task::Image(build) => image::run(sh, &build).map(drop),
        Task::Installed { package, folder } => deb::check_installed(sh, &package, &folder),
        Task::Instructions { json, update } => instructions::run(sh, json, update),
        Task::Layers => layers::run(sh),
        Task::Package => package::run(sh).map(drop),
        Task::Pictures { report } => pictures::run(sh, report),
        Task::Portability => portability::run(sh),
        Task::Release(build) => release::run(sh, &build),
        Task::Python => python::run(sh),
        Task::Rtos => rtos::run(sh),
        Task::Sanitize {
            sanitizer,
            packages,
            names,
        } => sanitize::run(sh, sanitizer, &packages, &names),
        Task::Semver { baseline } => semver::run(sh, &baseline),
        Task::Simulate(simulation) => simulate::run(sh, &simulation),
        Task::Spec { json } => spec::run(sh, json),
        Task::Static(build) => static_build::run(sh, &build),
        Task::Unpacked { image, folder } => image::check_unpacked(sh, &image, &folder),
        Task::Zenoh => zenoh::run(sh),
    }
}

/// A shell whose current folder is that of the workspace.
fn workspace() -> anyhow::Result<Shell> {
    let sh = Shell::new()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    sh.change_dir(folder.context("xtask is a folder of the workspace")?);
    Ok(sh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_cargo_test_are_passed_on() {
        let words = ["xtask", "draw", "-p", "rtorb", "--lib", "tests"];
        let Ok(Task::Draw { arguments }) = Task::try_parse_from(words) else {
            panic!("it is a command")
        };
        assert_eq!(arguments, words[2..]);
    }
}

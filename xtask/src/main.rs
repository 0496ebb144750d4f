//! Checks of the workspace's own rules: `cargo xtask layers`, `spec`, `instructions`, and `ci` for all that the gate runs.
//! `draw` tests with new random cases; `simulate` joins clients and servers in memory, on virtual time; `static` builds the program
//! for a board, `rtos` the guests that run real-time kernels; `portability` checks the portable crates for other systems. `features` checks
//! each feature of the services alone; `package` makes what is published, `book` the site of the documentation, and `pictures` those of the README.
#![forbid(unsafe_code)]

mod book;
mod ci;
mod debian;
mod draw;
mod elf;
mod features;
mod instructions;
mod layers;
mod metadata;
mod modules;
mod package;
mod pictures;
mod portability;
mod rtos;
mod simulate;
mod sources;
mod spec;
mod static_build;
mod test_files;
mod type_names;
mod valgrind;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use static_build::Mode;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["layers"] => layers::run(&workspace()),
        ["instructions"] => instructions::run(&workspace(), instructions::Mode::Table),
        ["instructions", "--json"] => instructions::run(&workspace(), instructions::Mode::Json),
        ["instructions", "--update"] => instructions::run(&workspace(), instructions::Mode::Update),
        ["draw", ref arguments @ ..] => draw::run(&workspace(), arguments),
        ["spec", ref options @ ..] => spec::run(&workspace(), options),
        ["simulate", ref arguments @ ..] => simulate::run(&workspace(), arguments),
        ["features"] => features::run(&workspace()),
        ["package"] => package::run(&workspace()),
        ["rtos"] => rtos::run(&workspace()),
        ["book"] => book::run(&workspace()),
        ["pictures"] => pictures::run(&workspace(), None),
        ["pictures", report] => pictures::run(&workspace(), Some(report)),
        ["portability"] => portability::run(&workspace()),
        ["ci"] => ci::run(&workspace()),
        ["static"] => static_build::run(&workspace(), Mode::Dist),
        ["static", "--try"] => static_build::run(&workspace(), Mode::Try),
        _ => {
            eprintln!(
                "usage: cargo xtask layers | spec [--json] | instructions [--json|--update] | draw [CARGO TEST ARGUMENTS] | simulate [--seeds N] [--from SEED] | ci | static [--try] | rtos | portability | features | package | book | pictures [REPORT]"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the workspace")
        .to_owned()
}

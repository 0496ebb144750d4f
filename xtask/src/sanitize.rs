//! `cargo xtask sanitize`: runs tests under ThreadSanitizer or AddressSanitizer, with the stable compiler.
//!
//! The standard library is not built anew, because the usual toolchain does not have its source. So ThreadSanitizer does not see the
//! synchronisation in it: `xtask/sanitize/thread.txt` suppresses its reports.

use anyhow::Context;
use clap::ValueEnum;
use xshell::{Shell, cmd};

use crate::metadata::target_folder;

/// A sanitizer, with the tests that it runs by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sanitizer {
    /// Data races, in the tests of all crates whose threads share memory.
    Thread,
    /// Accesses outside of memory, in the tests of shared memory.
    Address,
}

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Address => "address",
        }
    }

    /// The packages and the names of the tests that run by default; no name means all.
    fn scope(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Thread => (
                &["rtorb-os", "rtorb", "rtorb-services", "rtorb-dynamic"],
                &[],
            ),
            Self::Address => (
                &["rtorb-os", "rtorb"],
                &["byte_rings", "shared_copy", "shared_memory", "segment"],
            ),
        }
    }

    /// The variable of its options, and the options: a test program with a report ends with status 66.
    fn options(self, sh: &Shell) -> (&'static str, String) {
        match self {
            Self::Thread => {
                let suppressions = sh.current_dir().join("xtask/sanitize/thread.txt");
                let options = format!("suppressions={}:exitcode=66", suppressions.display());
                ("TSAN_OPTIONS", options)
            }
            // Tests leak what their process ends with anyway.
            Self::Address => ("ASAN_OPTIONS", "detect_leaks=0:exitcode=66".to_owned()),
        }
    }
}

/// Runs the tests of these packages with these names under a sanitizer; by default its own.
pub(crate) fn run(
    sh: &Shell,
    sanitizer: Sanitizer,
    packages: &[String],
    names: &[String],
) -> anyhow::Result<()> {
    let (own_packages, own_names) = sanitizer.scope();
    let own = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let packages = if packages.is_empty() {
        own(own_packages)
    } else {
        packages.to_vec()
    };
    let names = if names.is_empty() {
        own(own_names)
    } else {
        names.to_vec()
    };
    let packages = packages
        .iter()
        .flat_map(|name| ["-p".to_owned(), name.clone()]);
    let host = cmd!(sh, "rustc --print host-tuple").quiet().read()?;
    let name = sanitizer.name();
    // The code cannot ask the stable compiler for the sanitizer, so it gets a name of its own.
    let flags =
        format!("-Zsanitizer={name} -Cunsafe-allow-abi-mismatch=sanitizer --cfg {name}_sanitizer");
    let (variable, options) = sanitizer.options(sh);
    // With a target named, build scripts and procedural macros are built without the sanitizer.
    cmd!(
        sh,
        "cargo test --no-fail-fast --lib --tests --target {host} {packages...} -- {SKIPPED...} {names...}"
    )
    .env("CARGO_TARGET_DIR", target_folder(sh)?.join(name))
    .env("RUSTC_BOOTSTRAP", "1")
    .env("RUSTFLAGS", flags)
    .env(variable, options)
    .run()
    .context("a test failed, or a sanitizer reported something")
}

/// Tests that cannot hold with a sanitizer, which uses the stack itself.
const SKIPPED: [&str; 2] = ["--skip", "work_on_a_configured_stack_faults_no_page"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sanitizer_has_tests_of_packages_that_exist() {
        let sh = &crate::workspace().expect("the workspace");
        for sanitizer in Sanitizer::value_variants() {
            for package in sanitizer.scope().0 {
                let manifest = format!("crates/{package}/Cargo.toml");
                assert!(sh.path_exists(&manifest), "{manifest}");
            }
        }
    }
}

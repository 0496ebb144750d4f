//! `cargo xtask static`: `rtorb` as one file that runs on a board with nothing else, at `static/rtorb` in the target
//! folder.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use xshell::{Shell, TempDir, cmd};

use crate::elf;
use crate::metadata::target_folder;

/// How the file is built.
#[derive(clap::Args, Debug)]
pub(crate) struct Build {
    /// Builds it fast, and tries it.
    #[arg(long = "try")]
    pub(crate) is_trial: bool,
    /// What the command has beside its default features: tls, etcd, zenoh.
    #[arg(long, value_delimiter = ',')]
    features: Vec<String>,
}

/// Builds the file, and prints its place. A trial is run in an empty root.
pub(crate) fn run(sh: &Shell, build: &Build) -> anyhow::Result<()> {
    let placed = place(sh, build)?;
    if build.is_trial {
        try_in_empty_root(sh, &placed)?;
    }
    Ok(())
}

/// Builds the file, checks that it needs no other one and is as large as the pages say, prints its place and returns it. A trial is larger, and
/// so is a file with more features.
pub(crate) fn place(sh: &Shell, build: &Build) -> anyhow::Result<PathBuf> {
    let libc = Libc::choose(sh)?;
    println!("target {}: {}", libc.target, libc.why);
    let built = build_with(sh, &libc, build)?;
    let file = sh.read_binary_file(&built)?;
    let is_static = elf::is_static(&file).with_context(|| built.display().to_string())?;
    ensure!(
        is_static,
        "{} is not statically linked: it names an interpreter or a library",
        built.display()
    );
    let placed = sh
        .create_dir(target_folder(sh)?.join("static"))?
        .join("rtorb");
    // A program that runs cannot be written to, and can be replaced.
    sh.remove_path(&placed)?;
    sh.copy_file(built, &placed)?;
    println!(
        "{}: statically linked, {:.1} MB",
        placed.display(),
        file.len() as f64 / 1e6
    );
    let is_of_pages = !build.is_trial && build.features.is_empty();
    if is_of_pages && env::consts::ARCH == ARCHITECTURE_OF_PAGES {
        compare(sh, file.len())?;
    }
    Ok(placed)
}

/// Fails if a page says another size than that of the file.
fn compare(sh: &Shell, bytes: usize) -> anyhow::Result<()> {
    let megabytes = bytes as f64 / 1e6;
    for page in PAGES {
        let said = said(&sh.read_file(page)?);
        let said = said.with_context(|| format!("{page} does not say the file's size"))?;
        ensure!(
            (megabytes / said - 1.0).abs() <= SIZE_TOLERANCE,
            "the file is made, but {page} says that it has {said} MB, and it has {megabytes:.1} MB: correct the page"
        );
    }
    Ok(())
}

/// The megabytes that a page says: `one file of 38 MB`.
fn said(page: &str) -> Option<f64> {
    let (_, rest) = page.split_once("one file of ")?;
    let (number, _) = rest.split_once(" MB")?;
    number.parse().ok()
}

/// The pages that say how large the file is, and the architecture that they say it of.
const PAGES: [&str; 2] = ["README.md", "docs/how-to/board.md"];
const ARCHITECTURE_OF_PAGES: &str = "x86_64";
/// Compilers and C libraries differ by less, and a reader who plans for a board does not mind.
const SIZE_TOLERANCE: f64 = 0.1;

/// The C library that is linked in.
struct Libc {
    target: String,
    rustflags: &'static str,
    why: &'static str,
}

impl Libc {
    /// musl, which is made for it and comes with a target of Rust's; glibc when that target cannot be had.
    fn choose(sh: &Shell) -> anyhow::Result<Self> {
        let version = cmd!(sh, "rustc -vV").quiet().read()?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc -vV names no host")?;
        let architecture = host.split('-').next().unwrap_or(host);
        let target = format!("{architecture}-unknown-linux-musl");
        let sysroot = cmd!(sh, "rustc --print sysroot").quiet().read()?;
        let folder = Path::new(&sysroot).join("lib/rustlib").join(&target);
        if !folder.is_dir() {
            // There may be no rustup, or no network: what it prints is shown, and what follows from it is printed below.
            let _ = cmd!(sh, "rustup target add {target}").run();
        }
        if folder.is_dir() {
            return Ok(Self {
                target,
                rustflags: "",
                why: "with musl",
            });
        }
        // The compiler prints the name alone when it does not know the file.
        let glibc = cmd!(sh, "cc -print-file-name=libc.a").quiet().read();
        if glibc.is_ok_and(|path| Path::new(&path).is_absolute()) {
            return Ok(Self {
                target: host.to_owned(),
                rustflags: "-C target-feature=+crt-static",
                why: "with glibc, since there is no target of musl; names of hosts are not looked up without its shared libraries: give addresses",
            });
        }
        bail!(
            "neither musl nor a static glibc can be linked: run `rustup target add {target}`, or install libc.a (Debian: libc6-dev)"
        )
    }
}

fn build_with(sh: &Shell, libc: &Libc, build: &Build) -> anyhow::Result<PathBuf> {
    let (target, features) = (&libc.target, build.features.join(","));
    let (profile, folder) = if build.is_trial {
        ("dev", "debug")
    } else {
        ("dist", "dist")
    };
    let mut cargo = cmd!(
        sh,
        "cargo build -p rtorb-cli --bin rtorb --features {features} --target {target} --profile {profile}"
    );
    if build.is_trial {
        cargo = cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    }
    if !libc.rustflags.is_empty() {
        cargo = cargo.env("RUSTFLAGS", libc.rustflags);
    }
    cargo.run()?;
    Ok(target_folder(sh)?.join(target).join(folder).join("rtorb"))
}

/// Runs it where there is no other file: at first with nothing at all, then with /proc and /sys, as on a board.
fn try_in_empty_root(sh: &Shell, program: &Path) -> anyhow::Result<()> {
    if cmd!(sh, "id -u").quiet().read()? != "0" {
        println!("skipped: the program was not run in an empty root, which takes root to make");
        return Ok(());
    }
    let root = sh.create_temp_dir()?;
    for folder in ["proc", "sys", "tmp"] {
        sh.create_dir(root.path().join(folder))?;
    }
    sh.copy_file(program, root.path())?;
    // 1 says that the host is not fit for real time, and is an answer too.
    run_in(
        sh,
        &root,
        "chroot \"$1\" /rtorb check --json || test $? = 1",
    )?;
    // A busy host may lose a round or miss a claim, which says nothing of the program.
    run_in(
        sh,
        &root,
        "for d in proc sys; do mount --rbind /$d \"$1/$d\" || exit 99; done; exec chroot \"$1\" /rtorb measure --glance --no-fail --out /tmp/report",
    )?;
    let page = root.path().join("tmp/report/index.html");
    ensure!(page.is_file(), "no report was written in the empty root");
    println!("it checks and measures in an empty root");
    Ok(())
}

/// Runs a line of shell, with the root as its first argument, in a mount namespace of its own: what it mounts is gone when it ends,
/// however that is.
fn run_in(sh: &Shell, root: &TempDir, line: &str) -> anyhow::Result<()> {
    let root = root.path();
    let run = cmd!(sh, "timeout 300 unshare --mount sh -c {line} sh {root}");
    // What it prints is shown only if it fails.
    let output = run.ignore_status().output()?;
    ensure!(
        output.status.success(),
        "{line}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        // It ends with what failed.
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_says_another_size_is_found() {
        let sh = crate::workspace().expect("the workspace");
        let page = sh.read_file(PAGES[0]).expect("the page can be read");
        let bytes = (said(&page).expect("it says a size") * 1e6) as usize;
        compare(&sh, bytes).expect("all pages say the same");
        let error = compare(&sh, bytes / 2).expect_err("it has half of that");
        assert!(error.to_string().contains("correct the page"), "{error}");
    }
}

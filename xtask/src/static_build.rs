//! `cargo xtask static`: `rtorb` as one file that runs on a board with nothing else, at `static/rtorb` in the target
//! folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::elf;
use crate::metadata::target_folder;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Optimised, for a board.
    Dist,
    /// Built fast, and run in an empty root: for the gate.
    Try,
}

/// Builds it, checks that it needs no other file, and says where it is.
pub(crate) fn run(workspace: &Path, mode: Mode) -> anyhow::Result<()> {
    let host = host_target()?;
    let libc = Libc::choose(&host)?;
    println!("target {}: {}", libc.target, libc.why);
    let built = build(workspace, &libc, mode)?;
    let file = fs::read(&built).with_context(|| built.display().to_string())?;
    let is_static = elf::is_static(&file).with_context(|| built.display().to_string())?;
    ensure!(
        is_static,
        "{} is not statically linked: it names an interpreter or a library",
        built.display()
    );
    let folder = target_folder(workspace)?.join("static");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let placed = folder.join("rtorb");
    // A program that runs cannot be written to, and can be replaced.
    let _ = fs::remove_file(&placed);
    fs::copy(&built, &placed).with_context(|| placed.display().to_string())?;
    println!(
        "{}: statically linked, {:.1} MB",
        placed.display(),
        file.len() as f64 / 1e6
    );
    match mode {
        Mode::Dist if libc.target.starts_with(ARCHITECTURE_OF_PAGES) => {
            compare(workspace, file.len())
        }
        Mode::Dist => Ok(()),
        Mode::Try => try_in_empty_root(&placed),
    }
}

/// Fails if a page says another size than that of the file.
fn compare(workspace: &Path, octets: usize) -> anyhow::Result<()> {
    let megabytes = octets as f64 / 1e6;
    for page in PAGES {
        let path = workspace.join(page);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let said = said(&text).with_context(|| format!("{page} does not say the file's size"))?;
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
const ARCHITECTURE_OF_PAGES: &str = "x86_64-";
/// Compilers and C libraries differ by less, and a reader who plans for a board does not mind.
const SIZE_TOLERANCE: f64 = 0.15;

/// The C library that is linked in.
struct Libc {
    target: String,
    rustflags: &'static str,
    why: &'static str,
}

impl Libc {
    /// musl, which is made for it and comes with a target of Rust's; glibc when that target cannot be had.
    fn choose(host: &str) -> anyhow::Result<Self> {
        let architecture = host.split('-').next().unwrap_or(host);
        let target = format!("{architecture}-unknown-linux-musl");
        let sysroot = output("rustc", &["--print", "sysroot"])?;
        let installed = || {
            Path::new(sysroot.trim())
                .join("lib/rustlib")
                .join(&target)
                .is_dir()
        };
        if !installed() {
            println!("== rustup target add {target}");
            // There may be no rustup, or no network: what it says is shown, and what follows from it is said below.
            let _ = Command::new("rustup")
                .args(["target", "add", &target])
                .status();
        }
        if installed() {
            return Ok(Self {
                target,
                rustflags: "",
                why: "with musl",
            });
        }
        if has_static_glibc() {
            return Ok(Self {
                target: host.to_owned(),
                rustflags: "-C target-feature=+crt-static",
                why: "with glibc, since there is no target of musl; names of hosts are not looked up without its shared libraries: say addresses",
            });
        }
        bail!(
            "neither musl nor a static glibc can be linked: run `rustup target add {target}`, or install libc.a (Debian: libc6-dev)"
        )
    }
}

fn has_static_glibc() -> bool {
    // It prints the name alone when it does not know the file.
    output("cc", &["-print-file-name=libc.a"])
        .is_ok_and(|path| Path::new(path.trim()).is_absolute())
}

fn build(workspace: &Path, libc: &Libc, mode: Mode) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    command
        .current_dir(workspace)
        .args(["build", "-p", "rtorb-cli", "--bin", "rtorb"])
        .args(["--target", &libc.target]);
    let folder = match mode {
        Mode::Dist => {
            command.args(["--profile", "dist"]);
            "dist"
        }
        Mode::Try => {
            command.env("CARGO_PROFILE_DEV_DEBUG", "0");
            "debug"
        }
    };
    if !libc.rustflags.is_empty() {
        command.env("RUSTFLAGS", libc.rustflags);
    }
    let status = command.status().context("cargo build")?;
    ensure!(
        status.success(),
        "cargo build for {}: {status}",
        libc.target
    );
    Ok(target_folder(workspace)?
        .join(&libc.target)
        .join(folder)
        .join("rtorb"))
}

/// Runs it where there is no other file: at first with nothing at all, then with /proc and /sys, as on a board.
fn try_in_empty_root(program: &Path) -> anyhow::Result<()> {
    if output("id", &["-u"])?.trim() != "0" {
        println!("skipped: the program was not run in an empty root, which takes root to make");
        return Ok(());
    }
    let root = EmptyRoot::make(program)?;
    // 1 says that the host is not fit for real time, and is an answer too.
    root.run("chroot \"$1\" /rtorb check --json", &[0, 1])?;
    root.run(
        "for d in proc sys; do mount --rbind /$d \"$1/$d\" || exit 99; done; exec chroot \"$1\" /rtorb measure --glance --out /tmp/report",
        &[0],
    )?;
    let page = root.0.join("tmp/report/index.html");
    ensure!(page.is_file(), "no report was written in the empty root");
    println!("it checks and measures in an empty root");
    Ok(())
}

/// A folder with the program and nothing else, removed at the end.
struct EmptyRoot(PathBuf);

impl EmptyRoot {
    fn make(program: &Path) -> anyhow::Result<Self> {
        let root = Self(std::env::temp_dir().join(format!("rtorb-root-{}", std::process::id())));
        for folder in ["proc", "sys", "tmp"] {
            fs::create_dir_all(root.0.join(folder))?;
        }
        fs::copy(program, root.0.join("rtorb"))?;
        Ok(root)
    }

    /// Runs a line of shell, with the root as its first argument, in a mount namespace of its own: what it mounts is gone
    /// when it ends, however that is.
    fn run(&self, line: &str, fine: &[i32]) -> anyhow::Result<()> {
        println!("== {line}");
        let output = Command::new("timeout")
            .args(["300", "unshare", "--mount", "sh", "-c", line, "sh"])
            .arg(&self.0)
            .output()
            .context("timeout unshare --mount sh")?;
        let is_fine = output
            .status
            .code()
            .is_some_and(|code| fine.contains(&code));
        ensure!(
            is_fine,
            "{line}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

impl Drop for EmptyRoot {
    fn drop(&mut self) {
        // What is left in the folder for temporary files is no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The target that rustc itself is built for.
fn host_target() -> anyhow::Result<String> {
    let text = output("rustc", &["-vV"])?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

fn output(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let shown = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(shown)?;
    ensure!(output.status.success(), "{}: {}", shown(), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_says_another_size_is_found() {
        let workspace = crate::workspace();
        let page = fs::read_to_string(workspace.join(PAGES[0])).expect("the page can be read");
        let octets = (said(&page).expect("it says a size") * 1e6) as usize;
        compare(&workspace, octets).expect("all pages say the same");
        let error = compare(&workspace, octets / 2).expect_err("it has half of that");
        assert!(error.to_string().contains("correct the page"), "{error}");
    }
}

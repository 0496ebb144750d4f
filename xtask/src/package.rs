//! `cargo xtask package`: the packages as they would be published, and a project that uses them.
//!
//! The whole workspace is packaged. The packages that may be published are unpacked beside each other, away from the workspace, and
//! checked there.
//! Then a copy of `examples/template` that the README's commands make is built with them as its only source of rtorb, and its client calls
//! its server. The tutorial's programs are checked in the copy that the commands of the tutorial make.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

use crate::metadata::{Metadata, target_folder};

pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    let place = Place::new(workspace)?;
    let packages = place.package(workspace)?;
    place.check(&packages)?;
    place.try_template(workspace, &packages)?;
    place.try_tutorial(workspace, &packages)
}

/// A package that was unpacked: its name, and its folder.
struct Package {
    name: String,
    folder: PathBuf,
}

/// The folder of everything that is made here.
struct Place {
    folder: PathBuf,
    lock: PathBuf,
}

impl Place {
    fn new(workspace: &Path) -> anyhow::Result<Self> {
        let folder = target_folder(workspace)?.join("package");
        for made in ["crates", "copies"] {
            let made = folder.join(made);
            if made.exists() {
                fs::remove_dir_all(&made).with_context(|| made.display().to_string())?;
            }
            fs::create_dir_all(&made)?;
        }
        let lock = workspace.join("Cargo.lock");
        Ok(Self { folder, lock })
    }

    fn package(&self, workspace: &Path) -> anyhow::Result<Vec<Package>> {
        let metadata = Metadata::of(workspace)?;
        let mut command = Command::new("cargo");
        command.args(["package", "--workspace", "--no-verify", "--allow-dirty"]);
        succeed(command.current_dir(workspace))?;
        let unpacked = self.folder.join("crates");
        metadata
            .members()
            .filter(|member| member.publish.is_none())
            .map(|package| {
                let named = format!("{}-{}", package.name, package.version);
                let file = self.folder.join(format!("{named}.crate"));
                // `m`: cargo would take files with the time in the archive, the same in all of them, for those of the last run.
                succeed(
                    Command::new("tar")
                        .arg("xzmf")
                        .arg(file)
                        .arg("-C")
                        .arg(&unpacked),
                )?;
                Ok(Package {
                    name: package.name.clone(),
                    folder: unpacked.join(named),
                })
            })
            .collect()
    }

    /// Compiles what is in the packages, and nothing that is not in them.
    fn check(&self, packages: &[Package]) -> anyhow::Result<()> {
        let folder = self.folder.join("crates");
        let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n".to_owned();
        manifest += &patch(packages.iter());
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::copy(&self.lock, folder.join("Cargo.lock"))?;
        succeed(self.cargo("check", &folder).arg("--workspace"))
    }

    fn try_template(&self, workspace: &Path, packages: &[Package]) -> anyhow::Result<()> {
        let folder = self.copy(workspace, "README.md", packages)?;
        succeed(&mut self.cargo("build", &folder))?;
        self.call()
    }

    fn try_tutorial(&self, workspace: &Path, packages: &[Package]) -> anyhow::Result<()> {
        let folder = self.copy(workspace, "docs/tutorial/first-object.md", packages)?;
        let written = workspace.join("examples/thermostat");
        for files in ["build.rs", "idl", "src"] {
            succeed(
                Command::new("cp")
                    .arg("-r")
                    .arg(written.join(files))
                    .arg(&folder),
            )?;
        }
        succeed(&mut self.cargo("check", &folder))?;
        println!("The tutorial's programs were checked in the copy that its commands make.");
        Ok(())
    }

    /// Makes a copy of the template by the commands of a page, as if the workspace's folder were `rtorb`. Returns its folder, in which the
    /// packages are the only source of rtorb.
    fn copy(&self, workspace: &Path, page: &str, packages: &[Package]) -> anyhow::Result<PathBuf> {
        let text = fs::read_to_string(workspace.join(page)).context(page.to_owned())?;
        let commands = commands(&text).with_context(|| format!("{page} copies no template"))?;
        let checkout = self.folder.join("copies/rtorb");
        fs::create_dir_all(&checkout)?;
        let template = Command::new("cp")
            .args(["-r", "--parents", "examples/template"])
            .arg(&checkout)
            .current_dir(workspace)
            .status();
        ensure!(
            template.is_ok_and(|it| it.success()),
            "cp examples/template"
        );
        let shell = Command::new("sh")
            .args(["-e", "-c", &format!("{commands}\npwd")])
            .current_dir(&checkout)
            .output()
            .context("sh")?;
        let complaint = String::from_utf8_lossy(&shell.stderr);
        ensure!(shell.status.success(), "{page}: {commands}{complaint}");
        let folder = PathBuf::from(String::from_utf8_lossy(&shell.stdout).trim());
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        let (own, patched) = manifest
            .split_once(PATCH)
            .context("the template has a patch")?;
        let is_changed = patched.contains("\"../rtorb/crates/rtorb\"");
        ensure!(
            is_changed,
            "{page}: the copy is not for a folder beside rtorb"
        );
        let needed = packages
            .iter()
            .filter(|package| patched.contains(&format!("\n{} = ", package.name)));
        fs::write(folder.join("Cargo.toml"), own.to_owned() + &patch(needed))?;
        fs::copy(&self.lock, folder.join("Cargo.lock"))?;
        Ok(folder)
    }

    /// The template's client calls its server.
    fn call(&self) -> anyhow::Result<()> {
        let built = self.folder.join("target/debug");
        let server = Command::new(built.join("server"))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut server = Server(server);
        let output = server.0.stdout.take().context("it is a pipe")?;
        let mut reference = String::new();
        BufReader::new(output).read_line(&mut reference)?;
        for (percent, expected) in [
            ("40", "The valve is at 40 %.\n"),
            ("101", "The valve cannot move to 101 %.\n"),
        ] {
            let mut client = Command::new(built.join("client"));
            let answer = client.args([reference.trim(), percent]).output()?;
            let printed = String::from_utf8_lossy(&answer.stdout);
            let complaint = String::from_utf8_lossy(&answer.stderr);
            ensure!(
                printed == expected,
                "the client printed {printed:?}, {complaint}"
            );
        }
        println!("The template was built with the packages; its client called its server.");
        Ok(())
    }

    /// All that is compiled here has one folder, so that a dependency is compiled once.
    fn cargo(&self, what: &str, folder: &Path) -> Command {
        let mut command = Command::new("cargo");
        command
            .arg(what)
            .current_dir(folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }
}

/// The template's server, which ends with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Whether it has ended already makes no difference.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that the packages are in their folders, as if crates.io had them.
fn patch<'a>(packages: impl Iterator<Item = &'a Package>) -> String {
    let mut lines = format!("{PATCH}\n");
    for Package { name, folder } in packages {
        writeln!(lines, "{name} = {{ path = {folder:?} }}").expect("a string takes all");
    }
    lines
}

/// The commands of a page that copy the template and change the copy, up to the first one of cargo.
fn commands(page: &str) -> Option<String> {
    let mut blocks = page.split("```sh\n").skip(1);
    let block = blocks.find(|block| block.starts_with("cp -r examples/template"))?;
    let lines = block
        .lines()
        .take_while(|line| *line != "```" && !line.starts_with("cargo "));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

const PATCH: &str = "[patch.crates-io]";

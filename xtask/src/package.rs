//! `cargo xtask package`: the packages as they would be published, and a project that uses them.
//!
//! The whole workspace is packaged. The packages that may be published are unpacked beside each other, away from the workspace, and
//! checked there.
//! Then a copy of `examples/template` that the README's commands make is built with them as its only source of rtorb, and its client calls
//! its server. The tutorial's programs are checked in the copy that the commands of the tutorial make.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use xshell::{Cmd, Shell, cmd};

use crate::metadata::{members, target_folder};

/// Makes and checks the packages, and returns their files.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<Vec<PathBuf>> {
    let folder = target_folder(sh)?.join("package");
    for made in ["crates", "copies"] {
        sh.remove_path(folder.join(made))?;
        sh.create_dir(folder.join(made))?;
    }
    let place = Place { sh, folder };
    let packages = place.package()?;
    place.check(&packages)?;
    place.try_template(&packages)?;
    place.try_tutorial(&packages)?;
    Ok(packages.into_iter().map(|package| package.file).collect())
}

/// A package that was unpacked: its name, its file, and its folder.
struct Package {
    name: String,
    file: PathBuf,
    folder: PathBuf,
}

/// The folder of everything that is made here, and a shell whose current folder is the workspace.
struct Place<'a> {
    sh: &'a Shell,
    folder: PathBuf,
}

impl Place<'_> {
    fn package(&self) -> anyhow::Result<Vec<Package>> {
        let sh = self.sh;
        cmd!(sh, "cargo package --workspace --no-verify --allow-dirty").run()?;
        let unpacked = self.folder.join("crates");
        let published = members(sh)?
            .into_iter()
            .filter(|package| package.publish.is_none());
        let packages = published.map(|package| {
            let named = format!("{}-{}", package.name, package.version);
            let file = self.folder.join(format!("{named}.crate"));
            // `m`: cargo would take files with the time in the archive, the same in all of them, for those of the last run.
            cmd!(sh, "tar xzmf {file} -C {unpacked}").quiet().run()?;
            Ok(Package {
                name: package.name.to_string(),
                file,
                folder: unpacked.join(named),
            })
        });
        packages.collect()
    }

    /// Compiles what is in the packages, and nothing that is not in them. With the workspace's profiles and in its folder, where the packages of
    /// others are compiled already.
    fn check(&self, packages: &[Package]) -> anyhow::Result<()> {
        let sh = self.sh;
        let workspace = sh.read_file("Cargo.toml")?;
        let profiles = workspace.find("[profile.").map(|begin| &workspace[begin..]);
        let profiles = profiles.context("the workspace's manifest ends with profiles")?;
        let folder = self.folder.join("crates");
        let members = "[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n";
        let patch = patch(packages.iter());
        sh.write_file(
            folder.join("Cargo.toml"),
            format!("{members}{patch}{profiles}"),
        )?;
        sh.copy_file("Cargo.lock", &folder)?;
        let compiled = target_folder(sh)?;
        let _folder = sh.push_dir(folder);
        let check = cmd!(sh, "cargo check --workspace").env("CARGO_TARGET_DIR", compiled);
        Ok(check.run()?)
    }

    fn try_template(&self, packages: &[Package]) -> anyhow::Result<()> {
        let _folder = self.sh.push_dir(self.copy("README.md", packages)?);
        self.cargo("build").run()?;
        self.call()
    }

    fn try_tutorial(&self, packages: &[Package]) -> anyhow::Result<()> {
        let sh = self.sh;
        let folder = self.copy("docs/tutorial/first-object.md", packages)?;
        for files in ["build.rs", "idl", "src"] {
            cmd!(sh, "cp -r examples/thermostat/{files} {folder}").run()?;
        }
        let _folder = sh.push_dir(folder);
        self.cargo("check").run()?;
        println!("The tutorial's programs were checked in the copy that its commands make.");
        Ok(())
    }

    /// Makes a copy of the template by the commands of a page, as if the workspace's folder were `rtorb`. Returns its folder, in which the
    /// packages are the only source of rtorb.
    fn copy(&self, page: &str, packages: &[Package]) -> anyhow::Result<PathBuf> {
        let sh = self.sh;
        let commands = commands(&sh.read_file(page)?);
        let commands = commands.with_context(|| format!("{page} copies no template"))?;
        let checkout = sh.create_dir(self.folder.join("copies/rtorb"))?;
        cmd!(sh, "cp -r --parents examples/template {checkout}").run()?;
        let folder = {
            let _checkout = sh.push_dir(checkout);
            let script = format!("{commands}\npwd");
            let shell = cmd!(sh, "sh -e -c {script}").quiet();
            PathBuf::from(shell.read().with_context(|| page.to_owned())?)
        };
        let manifest = sh.read_file(folder.join("Cargo.toml"))?;
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
        sh.write_file(folder.join("Cargo.toml"), own.to_owned() + &patch(needed))?;
        sh.copy_file("Cargo.lock", &folder)?;
        Ok(folder)
    }

    /// The template's client calls its server.
    fn call(&self) -> anyhow::Result<()> {
        let sh = self.sh;
        let programs = self.folder.join("built/debug");
        let server = Command::new(programs.join("server"))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut server = Server(server);
        let output = server.0.stdout.take().context("it is a pipe")?;
        let mut reference = String::new();
        BufReader::new(output).read_line(&mut reference)?;
        let (client, reference) = (programs.join("client"), reference.trim());
        for (percent, expected) in [
            ("40", "The valve is at 40 %."),
            ("101", "The valve cannot move to 101 %."),
        ] {
            let call = cmd!(sh, "{client} {reference} {percent}").ignore_status();
            let printed = call.read()?;
            ensure!(printed == expected, "the client printed {printed:?}");
        }
        println!("The template was built with the packages; its client called its server.");
        Ok(())
    }

    /// Cargo with one folder for all that is compiled here, so that a dependency is compiled once.
    fn cargo(&self, what: &str) -> Cmd<'_> {
        let command = cmd!(self.sh, "cargo {what}").env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.env("CARGO_TARGET_DIR", self.folder.join("built"))
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

/// The lines of a manifest that take packages from their folders in the place of crates.io.
fn patch<'a>(packages: impl Iterator<Item = &'a Package>) -> String {
    let mut lines = format!("{PATCH}\n");
    for Package { name, folder, .. } in packages {
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

const PATCH: &str = "[patch.crates-io]";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::rust_files;

    /// A reader of a published package has no `docs/`.
    #[test]
    fn a_library_that_names_pages_says_where_they_are() {
        let sh = crate::workspace().expect("the workspace");
        let mut count = 0;
        for member in members(&sh).expect("cargo knows the packages") {
            let source = member.manifest_path.with_file_name("src");
            let root = source.join("lib.rs");
            if member.publish.is_some() || !root.exists() {
                continue;
            }
            let files = rust_files(source.as_std_path()).expect("the sources can be read");
            let texts = files
                .iter()
                .map(|file| sh.read_file(file).expect("a file of sources"));
            if texts.into_iter().any(|text| text.lines().any(names_a_page)) {
                let root = sh.read_file(&root).expect("a file of sources");
                let says_where = root.contains("env!(\"CARGO_PKG_REPOSITORY\")");
                assert!(says_where, "{} names pages of docs/ alone", member.name);
                count += 1;
            }
        }
        assert!(count > 5, "{count}");
    }

    fn names_a_page(line: &str) -> bool {
        let line = line.trim_start();
        (line.starts_with("///") || line.starts_with("//!")) && line.contains("docs/")
    }
}

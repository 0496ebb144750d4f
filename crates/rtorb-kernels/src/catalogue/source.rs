//! Who offers kernels: the distribution's package index, asked and downloaded from by its own client.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiments::ALL;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::processes::tools::{run_tool, run_tool_watched};
use serde::Serialize;

use super::name::Release;
use super::{Kernel, Package};

/// A package that holds a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The package, with the digest that the index has of it.
    pub package: Package,
    /// As `uname -r` will have it.
    pub release: String,
    /// How large the package is, in octets.
    pub bytes: u64,
}

impl Offer {
    /// Whether this kernel came out of this package.
    pub(super) fn is(&self, kernel: &Kernel) -> bool {
        kernel.package.as_ref() == Some(&self.package)
    }

    /// Its size in begun megabytes: the steps in which a download is told.
    pub(super) fn megabytes(&self) -> u64 {
        self.bytes.div_ceil(MEGABYTE)
    }
}

/// Where kernels come from.
pub trait Source: Debug {
    /// What there is.
    ///
    /// # Errors
    /// That there is no index, or nothing in it, with what to do; or the interrupt.
    fn offers(&self, interrupt: &Interrupt) -> Result<Vec<Offer>, LabError>;

    /// Puts the package's file into this folder, and answers where it is. `seen` is called often meanwhile, with how many octets
    /// of it are there.
    ///
    /// # Errors
    /// That it did not come; or the interrupt.
    fn download(
        &self,
        offer: &Offer,
        folder: &Path,
        seen: &mut dyn FnMut(u64),
        interrupt: &Interrupt,
    ) -> Result<PathBuf, LabError>;

    /// Puts the kernel image out of the package's file, and the modules that experiments need, into this folder, and answers where
    /// they are.
    ///
    /// # Errors
    /// That there is no image in it; or the interrupt.
    fn unpack(
        &self,
        package: &Path,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Unpacked, LabError>;
}

/// What a kernel's package has for an emulated machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// The kernel image.
    pub image: PathBuf,
    /// The modules, as far as the kernel has them.
    pub modules: Vec<PathBuf>,
}

/// Debian's index, by apt-cache and apt-get, and its packages, by dpkg-deb. Nothing of it needs to be root.
#[derive(Clone, Copy, Debug)]
pub struct Apt;

impl Source for Apt {
    fn offers(&self, interrupt: &Interrupt) -> Result<Vec<Offer>, LabError> {
        only_on_this_architecture(std::env::consts::ARCH)?;
        let found = ask(
            Command::new("apt-cache").args(["search", "--names-only", PATTERN]),
            interrupt,
        )?;
        let names = names_in(&found);
        if names.is_empty() {
            return Err(LabError::Incomplete {
                what: EMPTY_INDEX.to_owned(),
            });
        }
        let shown = ask(
            Command::new("apt-cache")
                .args(["show", "--no-all-versions"])
                .args(names),
            interrupt,
        )?;
        Ok(offers_in(&shown))
    }

    fn download(
        &self,
        offer: &Offer,
        folder: &Path,
        seen: &mut dyn FnMut(u64),
        interrupt: &Interrupt,
    ) -> Result<PathBuf, LabError> {
        let package = &offer.package;
        let mut command = Command::new("apt-get");
        command
            .args(["download", "--quiet"])
            .arg(format!("{}={}", package.name, package.version))
            .current_dir(folder);
        let watch = &mut || {
            seen(package_in(folder).map_or(0, |(_, bytes)| bytes));
            Ok(())
        };
        run_tool_watched(&mut command, DOWNLOAD_TIMEOUT, interrupt, watch)
            .map_err(|error| with_hint(error, package))?;
        let (path, _) = package_in(folder).ok_or_else(|| {
            LabError::process("apt-get", format!("downloaded no file of {}", package.name))
        })?;
        Ok(path)
    }

    fn unpack(
        &self,
        package: &Path,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Unpacked, LabError> {
        // The other modules, which are nearly all of it, go by.
        let script = "package=$1; folder=$2; shift 2; dpkg-deb --fsys-tarfile \"$package\" | tar --extract --directory \"$folder\" \
                      --transform 's,^.*/modules/.*/,modules/,' --wildcards \"$@\"";
        let modules = ALL.into_iter().flat_map(|known| known.modules());
        let patterns = modules.map(|module| format!("./*/{module}.ko*"));
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(package).arg(folder);
        command.arg("./boot/vmlinuz-*").args(patterns);
        match run_tool(command.env("LC_ALL", "C"), UNPACK_TIMEOUT, interrupt) {
            // The kernel may have the code of a module built in.
            Err(LabError::Process { what, .. }) if lacks_files(&what) => {}
            unpacked => drop(unpacked?),
        }
        let [mut images, modules] = ["boot", "modules"].map(|name| files_in(&folder.join(name)));
        match (images.pop(), images.pop()) {
            (Some(image), None) => Ok(Unpacked { image, modules }),
            _ => Err(LabError::process(
                "dpkg-deb",
                format!("{} does not hold one kernel image", package.display()),
            )),
        }
    }
}

/// Whether tar has ended by itself, and complains about nothing else than that files are not in a package.
fn lacks_files(complaints: &str) -> bool {
    let (status, complaints) = complaints.split_once('\n').unwrap_or_default();
    let mut lines = complaints.lines();
    status.contains("exit status: 2")
        && !complaints.is_empty()
        && lines.all(|line| {
            line.ends_with(": Not found in archive") || line.contains("Exiting with failure status")
        })
}

/// None when there is no such folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let entries = entries.filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

/// # Errors
/// That this is not Debian, or what the tool said.
fn ask(command: &mut Command, interrupt: &Interrupt) -> Result<String, LabError> {
    let program = command.get_program().to_owned();
    if !is_installed(&program.to_string_lossy()) {
        return Err(LabError::Incomplete {
            what: NOT_DEBIAN.to_owned(),
        });
    }
    run_tool(command, INDEX_TIMEOUT, interrupt)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn only_on_this_architecture(architecture: &str) -> Result<(), LabError> {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(LabError::Incomplete {
            what: format!(
                "the emulated machine is an x86-64 and runs this very program, so that kernels are of use on such a host only: this is {other}"
            ),
        }),
    }
}

fn names_in(found: &str) -> Vec<&str> {
    let names = found.lines().filter_map(|line| line.split(" - ").next());
    names.filter(|name| release_of(name).is_some()).collect()
}

/// `linux-image-6.12.117+deb12-rt-amd64-unsigned` holds `6.12.117+deb12-rt-amd64`.
fn release_of(package: &str) -> Option<&str> {
    let release = package
        .strip_prefix("linux-image-")?
        .strip_suffix("-unsigned")?;
    Release::read(release).map(|_| release)
}

/// Those of the stanzas that are whole.
fn offers_in(shown: &str) -> Vec<Offer> {
    shown.split("\n\n").filter_map(offer_in).collect()
}

fn offer_in(stanza: &str) -> Option<Offer> {
    let field = |name: &str| {
        let mut lines = stanza.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    };
    let name = field("Package")?;
    let sha256 = field("SHA256")?;
    let is_digest = sha256.len() == 64 && sha256.bytes().all(|digit| digit.is_ascii_hexdigit());
    Some(Offer {
        release: release_of(&name)?.to_owned(),
        bytes: field("Size")?.parse().ok()?,
        package: Package {
            version: field("Version")?,
            sha256: is_digest.then_some(sha256)?,
            name,
        },
    })
}

/// The one package file in a folder, and how large it is so far.
fn package_in(folder: &Path) -> Option<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut files = entries.filter_map(Result::ok);
    let entry = files.find(|entry| entry.path().extension().is_some_and(|end| end == "deb"))?;
    Some((entry.path(), entry.metadata().ok()?.len()))
}

/// What helps, behind what the client said.
fn with_hint(error: LabError, package: &Package) -> LabError {
    let LabError::Process { process, what } = error else {
        return error;
    };
    let hint = if what.contains("404") {
        "The index is older than what is on the server: `apt-get update` (as root) renews it."
    } else {
        "Is there a network? A kernel image that is there already can be named by its path."
    };
    LabError::Process {
        process,
        what: format!("{} was not downloaded: {what}\n{hint}", package.name),
    }
}

/// Without a signature, which nothing here checks: the signed ones come later than the others.
const PATTERN: &str = "^linux-image-[0-9].*-amd64-unsigned$";
const NOT_DEBIAN: &str = "there is no apt-cache: kernels are fetched from Debian's packages only. Name a kernel image by its path: \
                          --kernel ./bzImage, or --kernel NAME=./bzImage";
const EMPTY_INDEX: &str = "the package index offers no kernel: `apt-get update` (as root) fills it. A kernel image can also be named by its \
                           path: --kernel ./bzImage";
const INDEX_TIMEOUT: Duration = Duration::from_secs(60);
/// A hundred megabytes at a megabit a second.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(900);
const UNPACK_TIMEOUT: Duration = Duration::from_secs(120);
const MEGABYTE: u64 = 1_000_000;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As `apt-cache search` and `apt-cache show` of apt 2.6.1 print it.
    const SEARCHED: &str = include_str!("recorded/search.txt");
    const SHOWN: &str = include_str!("recorded/show.txt");

    pub(in super::super) fn recorded() -> Vec<Offer> {
        offers_in(SHOWN)
    }

    #[test]
    fn what_apt_prints_is_read() {
        let names = names_in(SEARCHED);
        assert!(
            names.contains(&"linux-image-6.12.117+deb12-rt-amd64-unsigned"),
            "{names:?}"
        );
        assert_eq!(names.len(), SEARCHED.lines().count());
        let offers = offers_in(SHOWN);
        let releases: Vec<&str> = offers.iter().map(|offer| &*offer.release).collect();
        assert_eq!(
            releases,
            [
                "6.1.0-56-rt-amd64",
                "6.12.115+deb12-rt-amd64",
                "6.12.117+deb12-amd64",
                "6.12.117+deb12-rt-amd64",
            ]
        );
        let rt = &offers[3];
        assert_eq!(rt.package.version, "6.12.117-1~deb12u1");
        assert_eq!(rt.bytes, 107_152_768);
        assert_eq!(rt.megabytes(), 108);
        assert!(rt.package.sha256.starts_with("f3ce89c004b4383a"));
    }

    #[test]
    fn other_packages_and_torn_stanzas_are_left_out() {
        let other = "linux-image-amd64 - meta\nlinux-image-6.12.1-arm64-unsigned - x\nlinux-image-6.12.1+deb13-amd64-dbg - x\n\n";
        assert!(names_in(other).is_empty());
        assert!(offers_in("").is_empty());
        let torn =
            "Package: linux-image-6.12.117+deb12-amd64-unsigned\nVersion: 1\nSize: 7\nSHA256: f3ce";
        assert!(offers_in(torn).is_empty(), "a digest that is too short");
    }

    #[test]
    fn a_package_may_lack_modules_and_nothing_else_may_be_wrong() {
        let lacks = "failed (exit status: 2):\ntar: ./*/sch_prio.ko*: Not found in archive\n\
                     tar: Exiting with failure status due to previous errors";
        assert!(lacks_files(lacks));
        let full = format!("{lacks}\ntar: ./boot/vmlinuz-6: Cannot write: No space left on device");
        assert!(!lacks_files(&full));
        let killed = [
            "failed (signal: 9 (SIGKILL)):\n",
            "failed (exit status: 137):\n",
        ];
        assert!(!killed.into_iter().any(lacks_files));
        assert!(!lacks_files("failed (exit status: 2):\n"));
    }

    #[test]
    fn what_went_wrong_comes_with_what_to_do() {
        let package = Package {
            name: "linux-image-x".to_owned(),
            version: "1".to_owned(),
            sha256: String::new(),
        };
        let hint = |what: &str| with_hint(LabError::process("apt-get", what), &package).to_string();
        assert!(hint("E: Failed to fetch http://x  404  Not Found").contains("apt-get update"));
        assert!(hint("E: Temporary failure resolving 'deb.debian.org'").contains("network"));
        let interrupted = with_hint(LabError::Interrupted, &package);
        assert!(matches!(interrupted, LabError::Interrupted));
        let other = only_on_this_architecture("aarch64").unwrap_err();
        assert!(other.to_string().contains("aarch64"), "{other}");
    }
}

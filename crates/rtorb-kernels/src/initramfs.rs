//! The guest's root: this program as `/init`, a console, and the job; the same bytes for the same program and job.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cpio::newc::{Builder, ModeFileType, trailer};
use rtorb_lab::LabError;
use rtorb_lab::experiments::own_program;

use crate::job::Job;
use crate::sha256::sha256;

/// What every guest of a campaign has: a program that needs no other file.
#[derive(Clone, Debug)]
pub struct Initramfs {
    archive: Vec<u8>,
    sha256: String,
}

impl Initramfs {
    /// With the program in this file, which must be statically linked.
    ///
    /// # Errors
    /// That it cannot be read, or needs other files.
    pub fn with_program(program: &Path) -> Result<Self, LabError> {
        let octets = fs::read(program).map_err(LabError::file(program))?;
        let archive = root(&octets).map_err(LabError::file(program))?;
        let sha256 = sha256(&archive);
        Ok(Self { archive, sha256 })
    }

    /// Adds programs of the user's own, which are experiments there ([`own_program`]).
    ///
    /// # Errors
    /// That one cannot be read, is not statically linked, or has a name that is none, or that another has.
    pub fn with_own_programs(mut self, programs: &[OwnFile]) -> Result<Self, LabError> {
        if programs.is_empty() {
            return Ok(self);
        }
        let file = |own: &OwnFile| {
            let octets = fs::read(&own.file).map_err(LabError::file(&own.file))?;
            Ok((own_program::file_of(&own.name), octets))
        };
        let files: Vec<_> = programs.iter().map(file).collect::<Result<_, LabError>>()?;
        let folder = own_program::FOLDER;
        let added = archive_of(folder, 0o755, &files).map_err(LabError::file(folder))?;
        self.archive.extend_from_slice(&added);
        self.sha256 = sha256(&self.archive);
        Ok(self)
    }

    /// The SHA-256 of the archive without a job, in hexadecimal digits.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Writes the archive and, behind it, that of a kernel's modules and one with the job: the kernel unpacks all.
    ///
    /// # Errors
    /// What the file system said.
    pub fn write(&self, file: &mut fs::File, modules: &[u8], job: &Job) -> io::Result<()> {
        file.write_all(&self.archive)?;
        file.write_all(modules)?;
        let text = serde_json::to_vec(job)?;
        let with_job = add(Vec::new(), JOB, ModeFileType::Regular, 0o400, &text)?;
        file.write_all(&trailer(with_job)?)
    }
}

/// A program of the user's own, as `NAME=FILE` on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// What the experiment is called, after `program/`.
    pub name: String,
    /// Where it is on the host.
    pub file: PathBuf,
}

impl OwnFile {
    /// The experiment's name.
    #[must_use]
    pub fn experiment(&self) -> String {
        format!("{}{}", own_program::PREFIX, self.name)
    }
}

impl FromStr for OwnFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, file) = text
            .split_once('=')
            .ok_or("say NAME=FILE, such as control-loop=target/control-loop")?;
        if own_program::is_name(name) && !file.is_empty() {
            Ok(Self {
                name: name.to_owned(),
                file: file.into(),
            })
        } else {
            Err(format!(
                "{name:?} names no program: at most 64 letters, digits, `-`, `_` and `.`, a letter or digit first"
            ))
        }
    }
}

fn root(program: &[u8]) -> io::Result<Vec<u8>> {
    let mut archive = Vec::with_capacity(program.len() + (1 << 12));
    for folder in FOLDERS {
        archive = add(archive, folder, ModeFileType::Directory, 0o755, &[])?;
    }
    let console = Builder::new("dev/console")
        .set_mode_file_type(ModeFileType::Char)
        .mode(0o020_600)
        .rdev_major(5)
        .rdev_minor(1);
    archive = console.write(archive, 0).finish()?;
    archive = add(archive, "init", ModeFileType::Regular, 0o755, program)?;
    ended(archive)
}

/// An archive of a folder of the guest's root with these files, each a path and its octets.
///
/// # Errors
/// That one is too large.
pub(super) fn archive_of(
    folder: &str,
    permissions: u32,
    files: &[(PathBuf, Vec<u8>)],
) -> io::Result<Vec<u8>> {
    let mut archive = add(Vec::new(), folder, ModeFileType::Directory, 0o755, &[])?;
    for (path, octets) in files {
        let path = path.to_string_lossy();
        archive = add(archive, &path, ModeFileType::Regular, permissions, octets)?;
    }
    ended(archive)
}

/// An archive that follows begins at a multiple of four octets.
fn ended(archive: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut archive = trailer(archive)?;
    archive.resize(archive.len().next_multiple_of(ALIGNMENT), 0);
    Ok(archive)
}

fn add(
    archive: Vec<u8>,
    name: &str,
    kind: ModeFileType,
    permissions: u32,
    octets: &[u8],
) -> io::Result<Vec<u8>> {
    let size = u32::try_from(octets.len()).map_err(io::Error::other)?;
    let entry = Builder::new(name)
        .mode(permissions)
        .set_mode_file_type(kind);
    let mut writer = entry.write(archive, size);
    writer.write_all(octets)?;
    writer.finish()
}

/// Where the guest finds its job.
pub(super) const JOB: &str = "job.json";
/// The folder in which the guest finds the modules of its kernel.
pub(super) const MODULES: &str = "modules";
const FOLDERS: [&str; 7] = ["dev", "proc", "sys", "tmp", "var", "var/tmp", "run"];
const ALIGNMENT: usize = 512;

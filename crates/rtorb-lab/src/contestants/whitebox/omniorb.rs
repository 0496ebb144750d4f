//! omniORB's counted processes: its clients, and the library that counts for it, both compiled on demand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::counts::Counts;
use crate::contestants::peers::omniorb::{COMPILE_TIMEOUT, LINK, OmniOrb, fnv1a};
use crate::error::LabError;
use crate::processes::interrupt::Interrupt;
use crate::processes::tools::run_tool;

/// What was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// `cubit server`.
    pub server: PathBuf,
    /// `clients IOR LOW-PRIORITY HIGH-PRIORITY LOW-CLIENTS`.
    pub clients: PathBuf,
    /// To be preloaded into either.
    pub lock_calls: PathBuf,
}

impl Programs {
    /// Compiles what no earlier run has.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn build(peer: &OmniOrb, interrupt: &Interrupt) -> Result<Self, LabError> {
        // Beside the contestant's program lies what omniidl made for it.
        let folder = peer.program.parent().unwrap_or(Path::new("."));
        let built = |name: &str, source: &str| {
            folder.join(format!("{name}-{:016x}", fnv1a(source.as_bytes())))
        };
        let programs = Self {
            server: peer.program.clone(),
            clients: built("clients", CLIENTS),
            lock_calls: built("lock_calls", LOCK_CALLS),
        };
        let clients = Source {
            text: CLIENTS,
            extension: "cc",
            compiler: &["g++", "-O2", "-I."],
            beside: &[&["cubitSK.cc"], &LINK[..]].concat(),
        };
        clients.compile(&programs.clients, interrupt)?;
        let lock_calls = Source {
            text: LOCK_CALLS,
            extension: "c",
            compiler: &["cc", "-O2", "-shared", "-fPIC"],
            beside: &["-ldl"],
        };
        lock_calls.compile(&programs.lock_calls, interrupt)?;
        Ok(programs)
    }
}

/// A page that a process with the counting library writes and we read.
#[derive(Debug)]
pub struct CountedPage {
    path: PathBuf,
}

impl CountedPage {
    /// A page in a folder.
    ///
    /// # Errors
    /// What the file system said.
    pub fn new(folder: &Path, name: &str) -> Result<Self, LabError> {
        let path = folder.join(format!("counts-{name}"));
        fs::write(&path, [0; PAGE_BYTES]).map_err(LabError::file(&path))?;
        Ok(Self { path })
    }

    /// The words that begin a program so that it counts into this page: `env` and its arguments.
    #[must_use]
    pub fn preloading(&self, programs: &Programs) -> [String; 3] {
        [
            "env".to_owned(),
            format!("LD_PRELOAD={}", programs.lock_calls.display()),
            format!("COUNTS={}", self.path.display()),
        ]
    }

    /// What was counted until now.
    ///
    /// # Errors
    /// What the file system said.
    pub fn read(&self) -> Result<Counts, LabError> {
        let page = fs::read(&self.path).map_err(LabError::file(&self.path))?;
        let mut counters = page.chunks_exact(8).map(|eight| {
            eight
                .iter()
                .rev()
                .fold(0, |number, octet| number << 8 | u64::from(*octet))
        });
        // The order is that of `enum counter` in ../peers/omniorb/lock_calls.c.
        let mut next = || counters.next().unwrap_or(0);
        Ok(Counts {
            lock_operations: next(),
            contended: next(),
            heap_calls: next(),
            condition_operations: Some(next()),
        })
    }
}

/// A text that becomes a program.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    text: &'a str,
    extension: &'a str,
    compiler: &'a [&'a str],
    /// What the compiler is told after the source.
    beside: &'a [&'a str],
}

impl Source<'_> {
    /// Compiles to another name and renames that: two runs at once cannot disturb each other.
    fn compile(&self, program: &Path, interrupt: &Interrupt) -> Result<(), LabError> {
        if program.exists() {
            return Ok(());
        }
        let building = program.with_extension(std::process::id().to_string());
        let source = building.with_extension(self.extension);
        fs::write(&source, self.text).map_err(LabError::file(&source))?;
        let mut command = Command::new(self.compiler[0]);
        command
            .args(&self.compiler[1..])
            .arg(&source)
            .args(self.beside)
            .arg("-o")
            .arg(&building);
        if let Some(folder) = program.parent() {
            command.current_dir(folder);
        }
        let built = run_tool(&mut command, COMPILE_TIMEOUT, interrupt);
        // Best effort: it is small, and of no more use.
        let _ = fs::remove_file(&source);
        match built {
            Ok(_) => fs::rename(&building, program).map_err(LabError::file(program)),
            Err(LabError::Interrupted) => Err(LabError::Interrupted),
            Err(error) => Err(LabError::Peer {
                what: format!(
                    "omniORB is installed but its counted processes do not build: {error}"
                ),
            }),
        }
    }
}

const CLIENTS: &str = include_str!("omniorb_clients.cc");
const LOCK_CALLS: &str = include_str!("../peers/omniorb/lock_calls.c");
/// As much as the library maps.
const PAGE_BYTES: usize = 4096;

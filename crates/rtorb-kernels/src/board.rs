//! Kernels that are no Linux: guests of `rtos/`, each a program for an emulated board with a kernel of another design.
//!
//! They have no packages, no root and no loads. A guest measures `os/operations` and says what it found on its first serial line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiments::os_operations;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::Results;
use rtorb_results::campaign::{Boards, Kernel};

use crate::machine::{Emulator, OnBoard};
use crate::sha256::sha256;

mod answer;

/// A guest that this program knows.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// Its name as a kernel.
    pub name: &'static str,
    /// What it stands for among the systems of the papers.
    pub stands_for: &'static str,
}

/// Every guest.
pub const GUESTS: [Guest; 2] = [
    Guest {
        name: "freertos",
        stands_for: "VxWorks: priorities, mutexes with inheritance, one address space",
    },
    Guest {
        name: "rtic",
        stands_for: "OSEKWorks: static tasks, resources with priority ceilings, one stack",
    },
];

/// The load that is none.
const NO_LOAD: &str = "none";
/// The board of all guests in the emulator, and its instruction set.
const BOARD: &str = "mps2-an385";
const INSTRUCTIONS: &str = "Thumb-2";

/// True if that is the name of a guest.
#[must_use]
pub fn is_known(name: &str) -> bool {
    GUESTS.iter().any(|guest| guest.name == name)
}

/// The guest of that name, in the folder that RTORB_GUESTS names, or in `target/rtos` of the workspace that this program is in.
///
/// # Errors
/// That it was not built, and how to build it.
pub fn find(name: &str) -> Result<Kernel, LabError> {
    let image = folder()?.join(name);
    let octets = fs::read(&image).map_err(|_| LabError::Incomplete {
        what: format!(
            "the guest {name} is not built: there is no {}. In rtorb's workspace: apt install rustc-web cargo-web rust-web-src, \
             then `cargo xtask rtos`. RTORB_GUESTS names another folder",
            image.display()
        ),
    })?;
    Ok(Kernel {
        name: name.to_owned(),
        release: name.to_owned(),
        sha256: sha256(&octets),
        image,
        package: None,
        board: Some(BOARD.to_owned()),
    })
}

/// True if that kernel runs an experiment under a load. A Linux runs each; a guest has one, and no loads.
#[must_use]
pub fn runs(kernel: &Kernel, experiment: &str, load: &str) -> bool {
    kernel.board.is_none() || (experiment == os_operations::NAME && load == NO_LOAD)
}

/// What a campaign depends on beside the guests themselves.
#[must_use]
pub fn identity(emulator: &Emulator) -> Boards {
    Boards {
        emulator: emulator.version.clone(),
        emulator_sha256: emulator.sha256.clone(),
        machine: format!("-M {BOARD} {}", ARGUMENTS.join(" ")),
    }
}

/// Boots the guest, lets it measure in so many rounds, and returns the octets that it said.
///
/// # Errors
/// That it did not come to its end, with the end of what it said; or the interrupt.
pub fn run(
    emulator: &Emulator,
    kernel: &Kernel,
    rounds: u16,
    interrupt: &Interrupt,
) -> Result<Vec<u8>, LabError> {
    let arguments = |command: &mut Command| {
        command
            .args(["-M", kernel.board.as_deref().unwrap_or(BOARD)])
            .args(ARGUMENTS)
            .arg("-semihosting-config")
            .arg(format!(
                "enable=on,target=native,arg={},arg=measure,arg={rounds}",
                kernel.name
            ))
            .arg("-kernel")
            .arg(&kernel.image);
    };
    let on_board = OnBoard {
        arguments: &arguments,
        timeout: TIMEOUT,
        ends_with: answer::END,
    };
    emulator.run_on_board(&on_board, interrupt)
}

/// What the octets say: how the kernel chooses the task that runs, and the results.
///
/// # Errors
/// The first line that cannot be read.
pub(crate) fn read(
    octets: &[u8],
    kernel: &Kernel,
    rounds: u16,
) -> Result<(String, Results), LabError> {
    let answer =
        answer::read(octets, INSTRUCTIONS).map_err(|what| LabError::process(&kernel.name, what))?;
    let results = answer.results(&kernel.name, rounds);
    Ok((answer.preempt, results))
}

fn folder() -> Result<PathBuf, LabError> {
    if let Some(named) = std::env::var_os("RTORB_GUESTS") {
        return Ok(named.into());
    }
    let executable = std::env::current_exe().map_err(LabError::file("this program"))?;
    let mut folders = executable.ancestors();
    let target = folders.find(|folder| folder.ends_with("target"));
    Ok(target.unwrap_or(Path::new("target")).join("rtos"))
}

/// The emulated clock counts instructions, and passes in no time where the processor is idle.
const ARGUMENTS: [&str; 13] = [
    "-icount",
    "shift=0,sleep=off",
    "-seed",
    "1",
    "-rtc",
    "base=2024-01-01T00:00:00,clock=vm",
    "-display",
    "none",
    "-monitor",
    "none",
    "-nodefaults",
    "-no-user-config",
    "-no-reboot",
];
/// Far longer than the rounds of a campaign take on a busy host.
const TIMEOUT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_runs_the_operations_without_load_and_nothing_else() {
        let kernel = |board: Option<&str>| Kernel {
            name: "any".to_owned(),
            release: String::new(),
            image: PathBuf::new(),
            sha256: String::new(),
            package: None,
            board: board.map(str::to_owned),
        };
        let guest = kernel(Some(BOARD));
        assert!(runs(&guest, os_operations::NAME, NO_LOAD));
        assert!(!runs(&guest, os_operations::NAME, "tmpfs"));
        assert!(!runs(&guest, "os/wakeup", NO_LOAD));
        assert!(runs(&kernel(None), "os/wakeup", "tmpfs"));
    }
}

//! Kernels that are no Linux: guests of `rtos/`, each a program for an emulated board with a kernel of another design.
//!
//! They have no packages, no root and no loads. A guest measures `os/operations` and says what it found on its first serial line.

use std::process::Command;
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiments::os_operations;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::Results;
use rtorb_results::campaign::{Boards, Kernel};

use crate::catalogue::BOARD;
use crate::machine::{Emulator, OnBoard};

mod answer;

/// The load that is none.
const NO_LOAD: &str = "none";
/// The instruction set of the board.
const INSTRUCTIONS: &str = "Thumb-2";

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

/// The same in words, with the beginning of the digest.
#[must_use]
pub(crate) fn in_words(boards: Option<&Boards>) -> String {
    boards.map_or_else(
        || "none".to_owned(),
        |boards| {
            let digest = boards.emulator_sha256.get(..DIGITS).unwrap_or_default();
            format!("{} {digest} {}", boards.emulator, boards.machine)
        },
    )
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

/// How many of a digest are shown.
const DIGITS: usize = 16;
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
            image: "".into(),
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

//! The guest's program: this one, statically linked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use rtorb_lab::LabError;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::processes::tools::run_tool;

use crate::built;

/// The file that guests run: the one that the user `named`; else `executable` itself, when it is statically linked; else the one
/// that `cargo xtask static` made in the checkout that `executable` was built in, or in the current folder.
///
/// # Errors
/// That there is none that can be used, and how to make one; or the interrupt.
pub fn find(
    named: Option<&Path>,
    executable: &Path,
    interrupt: &Interrupt,
) -> Result<PathBuf, LabError> {
    if let Some(program) = named {
        check(program)?;
        is_this_version(program, interrupt)?;
        return Ok(program.to_owned());
    }
    if check(executable).is_ok() {
        return Ok(executable.to_owned());
    }
    let program = built::find(executable, "static/rtorb").ok_or_else(|| none(executable))?;
    check(&program)?;
    is_this_version(&program, interrupt)?;
    Ok(program)
}

fn none(executable: &Path) -> LabError {
    LabError::Incomplete {
        what: format!(
            "guests need a statically linked rtorb, and {} is not: {MAKE_ONE}",
            executable.display()
        ),
    }
}

/// Whether a machine that has no other file can run it.
fn check(program: &Path) -> Result<(), LabError> {
    let octets = fs::read(program).map_err(LabError::file(program))?;
    let cannot = |why: &str| LabError::Incomplete {
        what: format!(
            "{} cannot be a guest's program: {why}; {MAKE_ONE}",
            program.display()
        ),
    };
    let needs_loader = needs_loader(&octets);
    match needs_loader {
        Ok(false) => Ok(()),
        Ok(true) => Err(cannot("it is dynamically linked")),
        Err(why) => Err(cannot(&why)),
    }
}

/// Whether a guest can run this program of the user's own.
///
/// # Errors
/// Why not, and how it can.
pub(super) fn check_static(program: &Path) -> Result<(), LabError> {
    let octets = fs::read(program).map_err(LabError::file(program))?;
    let why = match needs_loader(&octets) {
        Ok(false) => return Ok(()),
        Ok(true) => "it is dynamically linked, and a guest has no other file".to_owned(),
        Err(why) => why,
    };
    Err(LabError::Incomplete {
        what: format!(
            "{} cannot be measured in a guest: {why}. Link it statically: `cc -static`, or `cargo build --target x86_64-unknown-linux-musl`",
            program.display()
        ),
    })
}

fn needs_loader(octets: &[u8]) -> Result<bool, String> {
    let unreadable = |error: object::Error| format!("it is no program of x86-64: {error}");
    let header = FileHeader64::<LittleEndian>::parse(octets).map_err(unreadable)?;
    if header.e_machine(LittleEndian) != EM_X86_64 {
        return Err("it is not for x86-64".to_owned());
    }
    let segments = header
        .program_headers(LittleEndian, octets)
        .map_err(unreadable)?;
    Ok(segments
        .iter()
        .any(|segment| segment.p_type(LittleEndian) == PT_INTERP))
}

/// Another version's guest may not understand what it is asked.
fn is_this_version(program: &Path, interrupt: &Interrupt) -> Result<(), LabError> {
    let said = run_tool(
        Command::new(program).arg("--version"),
        VERSION_TIMEOUT,
        interrupt,
    );
    let wanted = concat!("rtorb ", env!("CARGO_PKG_VERSION"));
    match said {
        Err(LabError::Interrupted) => Err(LabError::Interrupted),
        Ok(said) if said.trim() == wanted => Ok(()),
        Ok(said) => Err(LabError::Incomplete {
            what: format!(
                "{} says that it is {:?}, and not {wanted}: {MAKE_ONE}",
                program.display(),
                said.trim()
            ),
        }),
        Err(error) => Err(LabError::Incomplete {
            what: format!("{} is no rtorb: {error}; {MAKE_ONE}", program.display()),
        }),
    }
}

const MAKE_ONE: &str = "run `cargo xtask static` in a checkout of rtorb, and then this command there; or name a file: --program FILE";
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_guest_can_run_is_refused_and_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("rtorb");
        fs::write(&text, "#!/bin/sh\n").unwrap();
        let error = find(Some(&text), &text, &Interrupt::new()).unwrap_err();
        assert!(error.to_string().contains("cargo xtask static"), "{error}");
        let error = none(&text).to_string();
        for said in ["is not: run `cargo xtask static`", "--program FILE"] {
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_program_that_needs_a_loader_is_told_from_one_that_does_not() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = cfg!(not(target_feature = "crt-static"));
        assert_eq!(needs_loader(&own), Ok(needs));
        assert!(needs_loader(b"\x7fELF").is_err());
    }
}

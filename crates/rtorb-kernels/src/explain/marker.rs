//! Where a program of the user's own marks its samples: the function `rtorb_sample`, which it calls once for each time that it prints.

use std::fs;

use object::{Object, ObjectKind, ObjectSymbol, SymbolKind};
use rtorb_lab::LabError;

use crate::initramfs::OwnFile;

/// The marker of a program, and the program's file, whose symbols name its functions.
#[derive(Debug)]
pub(super) struct Marker {
    pub(super) bytes: Vec<u8>,
    /// Of the marker, in the guest as in the file.
    pub(super) address: u64,
}

impl Marker {
    /// The marker of this program.
    ///
    /// # Errors
    /// That it has none, or none that can be found in a guest, and what to do.
    pub(super) fn of(own: &OwnFile) -> Result<Self, LabError> {
        let bytes = fs::read(&own.file).map_err(LabError::file(&own.file))?;
        let address = address(&bytes).map_err(|why| LabError::Incomplete {
            what: format!("{} {why}", own.file.display()),
        })?;
        Ok(Self { bytes, address })
    }
}

fn address(bytes: &[u8]) -> Result<u64, &'static str> {
    let elf = object::File::parse(bytes).map_err(|_| NO_PROGRAM)?;
    if elf.kind() != ObjectKind::Executable {
        return Err(MOVES);
    }
    let mut functions = elf
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .peekable();
    if functions.peek().is_none() {
        return Err(STRIPPED);
    }
    let marker = functions.find(|symbol| symbol.name() == Ok(NAME));
    marker.map(|symbol| symbol.address()).ok_or(UNMARKED)
}

/// The function that a program calls right after it has read the clock.
pub(super) const NAME: &str = "rtorb_sample";
const NO_PROGRAM: &str = "is no program";
const MOVES: &str = "is position-independent, so that the place of its functions in a guest is not known: link it with `cc -static -no-pie`, \
                     or in Rust with `-C relocation-model=static`";
const STRIPPED: &str = "has no symbols, so that its functions have no names: build it without `-s`, and do not strip it";
const UNMARKED: &str = "has no function rtorb_sample, so that its samples cannot be found again: let it call one, which is not inlined, once for \
                        each time that it prints (docs/how-to/timing-gate.md)";

#[cfg(test)]
mod tests {
    use super::*;

    use std::path::Path;
    use std::process::Command;

    /// The C program that this is, linked in this way; `None` without a compiler.
    fn linked(folder: &Path, source: &str, options: &[&str]) -> Option<OwnFile> {
        let (file, text) = (folder.join("program"), folder.join("program.c"));
        fs::write(&text, source).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-nostdlib", "-Wl,-e,begin"]).args(options);
        let compiled = compiler.arg("-o").arg(&file).arg(&text).status();
        if !compiled.is_ok_and(|status| status.success()) {
            println!("skipped: there is no C compiler");
            return None;
        }
        let name = "program".to_owned();
        Some(OwnFile { name, file })
    }

    #[test]
    fn the_marker_of_a_program_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let fixed = ["-static", "-no-pie"];
        let Some(own) = linked(folder.path(), MARKED, &fixed) else {
            return;
        };
        let marker = Marker::of(&own).unwrap();
        assert_eq!(marker.bytes, fs::read(&own.file).unwrap());
        let elf = object::File::parse(&*marker.bytes).unwrap();
        assert_ne!(marker.address, elf.entry());
        let text = elf.symbols().find(|symbol| symbol.name() == Ok(NAME));
        assert_eq!(text.map(|symbol| symbol.address()), Some(marker.address));
    }

    #[test]
    fn a_program_without_a_marker_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        for (source, options, says) in [
            (MARKED, &["-static", "-no-pie", "-s"][..], "do not strip it"),
            (MARKED, &["-static-pie", "-fPIE"], "-no-pie"),
            (UNMARKED_SOURCE, &["-static", "-no-pie"], "rtorb_sample"),
        ] {
            let Some(own) = linked(folder.path(), source, options) else {
                return;
            };
            let refused = Marker::of(&own).unwrap_err().to_string();
            assert!(refused.contains(says), "{options:?}: {refused}");
            let file = own.file.display().to_string();
            assert!(refused.starts_with(&file), "{refused}");
        }
        assert_eq!(address(b"#!/bin/sh"), Err(NO_PROGRAM));
    }

    const MARKED: &str =
        "void begin(void) { for (;;); }\nvoid rtorb_sample(void) { __asm__(\"\"); }\n";
    const UNMARKED_SOURCE: &str = "void begin(void) { for (;;); }\n";
}

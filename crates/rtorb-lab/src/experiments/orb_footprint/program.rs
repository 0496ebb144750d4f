//! How large a program is: the sections of its ELF file, added up as size(1) does.

use object::LittleEndian;
use object::elf::{FileHeader64, SHF_ALLOC, SHF_WRITE, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};

/// Octets of a program's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    /// Code and constants: sections that are loaded and never written.
    pub(super) text: u64,
    /// Variables with a first value.
    pub(super) data: u64,
    /// Variables that begin as zero: they are not in the file.
    pub(super) bss: u64,
    /// The whole file.
    pub(super) file: u64,
}

impl Program {
    /// Of a 64-bit little-endian ELF file; `None` when it is none.
    pub(super) fn of(file: &[u8]) -> Option<Self> {
        let header = FileHeader64::<LittleEndian>::parse(file).ok()?;
        let endian = header.endian().ok()?;
        let mut program = Self {
            file: file.len() as u64,
            ..Self::default()
        };
        for section in header.section_headers(endian, file).ok()? {
            let flags = section.sh_flags(endian);
            let kind = section.sh_type(endian);
            let octets = section.sh_size(endian);
            match (flags.contains(SHF_ALLOC), flags.contains(SHF_WRITE), kind) {
                (false, _, _) => {}
                (true, true, SHT_NOBITS) => program.bss += octets,
                (true, true, _) => program.data += octets,
                (true, false, _) => program.text += octets,
            }
        }
        Some(program)
    }

    /// Each with its name.
    pub(super) fn named(self) -> [(&'static str, u64); 5] {
        [
            ("text", self.text),
            ("data", self.data),
            ("bss", self.bss),
            ("stripped", self.stripped()),
            ("file", self.file),
        ]
    }

    /// What is left of the file when symbols and debug information are stripped, but for its headers.
    pub(super) fn stripped(self) -> u64 {
        self.text + self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_added_up_by_what_becomes_of_them() {
        let mut file = vec![0; 0x40];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[0x28] = 0x40;
        file[0x3a] = 64;
        file[0x3c] = 5;
        // Code, constants, data, bss, and debug information, which is not loaded.
        for (kind, flags, octets) in [
            (1u8, 6u8, 100u8),
            (1, 2, 10),
            (1, 3, 20),
            (8, 3, 30),
            (1, 0, 99),
        ] {
            let mut header = [0; 64];
            header[4] = kind;
            header[8] = flags;
            header[0x20] = octets;
            file.extend(header);
        }
        let program = Program::of(&file).unwrap();
        assert_eq!((program.text, program.data, program.bss), (110, 20, 30));
        assert_eq!(program.stripped(), 130);
        assert_eq!(Program::of(b"#!/bin/sh and more"), None);
        assert_eq!(Program::of(&file[..0x50]), None);
    }

    #[test]
    fn this_program_has_code() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let program = Program::of(&own).unwrap();
        assert!(program.text > 100_000 && program.stripped() <= program.file);
    }
}

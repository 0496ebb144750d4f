//! The emulator's observer, which is a part of this program: hands it to an emulator and reads what it wrote.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;

use object::{Object, ObjectSection, ObjectSymbol};
use rtorb_lab::LabError;

use super::trace::Trace;

/// An observer that waits for a mark. Its files have no names: whatever ends the laboratory, nothing is left behind.
#[derive(Debug)]
pub(crate) struct Observer {
    library: File,
    trace: File,
    mark: Mark,
}

/// What it waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The address that is counted.
    pub(crate) address: u64,
    /// When it is come to for this time, counted from 1, the trace ends.
    pub(crate) count: u64,
    /// The address of the kernel's function that switches tasks.
    pub(crate) switch: u64,
}

impl Observer {
    /// For an emulator that says this of its version.
    ///
    /// # Errors
    /// That this program was built without an observer, or what the file system said.
    pub(crate) fn new(emulator: &str, mark: Mark) -> Result<Self, LabError> {
        let library = library(interface_of(emulator)).ok_or_else(|| LabError::Incomplete {
            what: MISSING.to_owned(),
        })?;
        let open = || tempfile::tempfile().map_err(LabError::file(std::env::temp_dir()));
        let mut file = open()?;
        file.write_all(&library)
            .map_err(LabError::file(std::env::temp_dir()))?;
        Ok(Self {
            library: file,
            trace: open()?,
            mark,
        })
    }

    /// The emulator's arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let Mark {
            address,
            count,
            switch,
        } = self.mark;
        let (library, trace) = (path(&self.library), path(&self.trace));
        let plugin = format!("{library},addr={address},count={count},switch={switch},out={trace}");
        vec!["-plugin".to_owned(), plugin]
    }

    /// What happened before the mark, when the machine is switched off.
    ///
    /// # Errors
    /// That it cannot be read.
    pub(crate) fn trace(mut self) -> Result<Trace, LabError> {
        let mut read = || -> std::io::Result<Trace> {
            self.trace.seek(SeekFrom::Start(0))?;
            Trace::read(BufReader::new(&self.trace))
        };
        read().map_err(LabError::file("the observer's trace"))
    }
}

/// Where another process of the same user finds a file that we have open.
fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// The version of the plugin interface that an emulator has at least. QEMU takes what claims a version between the oldest and the
/// newest that it knows: include/qemu/qemu-plugin.h of its releases.
fn interface_of(emulator: &str) -> i32 {
    let version = emulator.split_ascii_whitespace().find_map(|word| {
        let mut numbers = word.split('.').map_while(|part| part.parse::<u32>().ok());
        Some((
            numbers.next()?,
            numbers.next()?,
            numbers.next().unwrap_or(0),
        ))
    });
    match version {
        Some(version) if version < (8, 2, 4) => 1,
        Some(version) if version < (9, 1, 0) => 2,
        Some(version) if version < (9, 2, 0) => 3,
        _ => 4,
    }
}

/// The library, claiming this version of the interface; `None` where there is none.
fn library(interface: i32) -> Option<Vec<u8>> {
    let mut octets = LIBRARY.to_vec();
    let at = {
        let elf = object::File::parse(LIBRARY).ok()?;
        let symbol = elf
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok(CLAIM))?;
        let section = elf.section_by_index(symbol.section_index()?).ok()?;
        let (from, _) = section.file_range()?;
        usize::try_from(from + (symbol.address() - section.address())).ok()?
    };
    octets
        .get_mut(at..at + size_of_val(&interface))?
        .copy_from_slice(&interface.to_ne_bytes());
    Some(octets)
}

/// Made by the build script; empty where it could not.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/observer.so"));
/// The number that QEMU looks at.
const CLAIM: &str = "qemu_plugin_version";
const MISSING: &str = "this rtorb was built without the emulator's observer, and cannot explain samples: build it on the kind of machine that \
                       it runs on (`cargo build` says why it was left out)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_is_offered_what_it_knows() {
        for (said, interface) in [
            (
                "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)",
                1,
            ),
            (
                "QEMU emulator version 8.2.2 (Debian 1:8.2.2+ds-0ubuntu1)",
                1,
            ),
            ("QEMU emulator version 9.0.4", 2),
            ("QEMU emulator version 9.1.0", 3),
            (
                "QEMU emulator version 10.0.3 (Debian 1:10.0.3+ds-0+deb13u1)",
                4,
            ),
            ("something else", 4),
        ] {
            assert_eq!(interface_of(said), interface, "{said}");
        }
    }

    #[test]
    fn the_library_claims_the_version_that_it_is_told() {
        if LIBRARY.is_empty() {
            println!("skipped: this test was built without the observer");
            return;
        }
        let (one, four) = (library(1).unwrap(), library(4).unwrap());
        assert_eq!(one, LIBRARY);
        let differing = one.iter().zip(&four).filter(|(a, b)| a != b).count();
        assert_eq!((one.len(), differing), (four.len(), 1));
    }

    #[test]
    fn an_observer_that_no_emulator_has_run_has_no_trace() {
        let mark = Mark {
            address: 1,
            count: 2,
            switch: 3,
        };
        let Ok(observer) = Observer::new("QEMU emulator version 7.2.22", mark) else {
            println!("skipped: this test was built without the observer");
            return;
        };
        let [option, plugin] = &observer.arguments()[..] else {
            panic!("an option and its value");
        };
        assert_eq!(option, "-plugin");
        assert!(
            plugin.contains(",addr=1,count=2,switch=3,out=/proc/"),
            "{plugin}"
        );
        assert!(observer.trace().is_err());
    }
}

//! How much of a program is the ORB: the sizes in its symbol table, added up by the crate that each symbol is of.

use std::collections::BTreeMap;

use object::{Object, ObjectSymbol, SymbolKind};

/// Octets of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Library {
    /// Of each of [`CRATES`].
    pub(super) crates: BTreeMap<&'static str, u64>,
    /// Of all, those of the standard library and of C too.
    pub(super) all: u64,
}

impl Library {
    /// Of an executable; `None` when it was stripped of its symbols, or is none.
    pub(super) fn of(file: &[u8]) -> Option<Self> {
        let file = object::File::parse(file).ok()?;
        // One function may have several names: it is counted once, by the last.
        let functions: BTreeMap<u64, (&str, u64)> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| Some((symbol.address(), (symbol.name().ok()?, symbol.size()))))
            .collect();
        let mut library = Self::default();
        for (name, octets) in functions.into_values() {
            let name = format!("{:#}", rustc_demangle::demangle(name));
            let found = crate_of(&name);
            if let Some(known) = CRATES.into_iter().find(|known| Some(*known) == found) {
                *library.crates.entry(known).or_default() += octets;
            }
            library.all += octets;
        }
        (library.all > 0).then_some(library)
    }

    /// Each crate of the ORB, these together, and all of the program.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let crates = self.crates.iter().map(|(name, octets)| (*name, *octets));
        crates.chain([("orb", self.orb()), ("all", self.all)])
    }

    /// The ORB: its crates together.
    pub(super) fn orb(&self) -> u64 {
        self.crates.values().sum()
    }
}

/// The crate of a demangled symbol: of the type whose method it is; of the trait when that type is none of a crate or is
/// the standard library's.
fn crate_of(symbol: &str) -> Option<&str> {
    let Some(inside) = symbol.strip_prefix('<') else {
        return first_word(symbol);
    };
    let (of_type, of_trait) = inside.split_once(" as ").unwrap_or((inside, ""));
    let is_own = |word: &&str| !STANDARD.contains(word) && of_type.contains(&format!("{word}::"));
    first_word(of_type)
        .filter(is_own)
        .or_else(|| first_word(of_trait))
        .or_else(|| first_word(of_type))
}

/// The first word behind references, brackets and the like.
fn first_word(path: &str) -> Option<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let path = path.trim_start_matches(|letter| !is_part(letter));
    let path = ["mut ", "const ", "dyn "]
        .iter()
        .find_map(|word| path.strip_prefix(word))
        .unwrap_or(path);
    let word = path.split(|letter| !is_part(letter)).next()?;
    (!word.is_empty()).then_some(word)
}

/// What the ORB is made of.
pub(super) const CRATES: [&str; 4] = ["rtorb", "rtorb_core", "rtorb_wire", "rtorb_os"];
const STANDARD: [&str; 3] = ["core", "alloc", "std"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_of_the_crate_that_wrote_it() {
        for (symbol, of) in [
            ("rtorb::poa::Poa::activate", "rtorb"),
            ("<rtorb_wire::cdr::Reader>::octet", "rtorb_wire"),
            (
                "<rtorb_lab::contestants::cubit::Host as rtorb::Servant>::call",
                "rtorb_lab",
            ),
            (
                "<&mut rtorb_os::ring::Ring<T> as core::fmt::Debug>::fmt",
                "rtorb_os",
            ),
            (
                "<alloc::vec::Vec<u8> as rtorb_wire::cdr::Encode>::encode",
                "rtorb_wire",
            ),
            ("<u32 as rtorb_wire::cdr::Encode>::encode", "rtorb_wire"),
            ("<[T] as core::fmt::Debug>::fmt", "core"),
            ("core::ptr::drop_in_place<rtorb::Orb>", "core"),
            ("memcpy", "memcpy"),
        ] {
            assert_eq!(crate_of(symbol), Some(of), "{symbol}");
        }
        assert_eq!(crate_of(""), None);
    }

    #[test]
    fn this_program_has_symbols_of_the_orb() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let library = Library::of(&own).unwrap();
        assert_eq!(library.crates.len(), CRATES.len());
        assert!(library.crates.values().all(|octets| *octets > 0));
        assert!(library.orb() < library.all);
        assert_eq!(Library::of(b"#!/bin/sh"), None);
    }
}

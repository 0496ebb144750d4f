//! Every stored input of every target: those that reach much code, and those that were found to fail.

use std::fs;
use std::path::Path;

use rtorb_fuzz::{TARGETS, mutate};

#[test]
fn no_stored_input_makes_its_target_fail() {
    for target in TARGETS {
        let count = stored(target.name)
            .iter()
            .map(|input| (target.run)(input))
            .count();
        assert!(count > 0, "{} has inputs", target.name);
    }
}

#[test]
fn every_folder_of_inputs_is_that_of_a_target() {
    for kind in KINDS {
        for folder in entries(kind) {
            let name = folder.file_name().expect("its name");
            let is_known = TARGETS.iter().any(|target| name == target.name);
            assert!(is_known, "{}", folder.display());
        }
    }
}

#[test]
fn the_stored_inputs_are_small_in_all() {
    let files = TARGETS.iter().flat_map(|target| stored(target.name));
    let bytes: usize = files.map(|input| input.len()).sum();
    assert!(bytes <= 1 << 20, "{bytes} bytes");
}

#[test]
fn the_mutator_keeps_within_its_room() {
    let inputs = stored("server");
    for (seed, input) in (0..).zip(inputs.iter().cycle().take(2_000)) {
        let mut data = input.clone();
        data.resize(input.len() + 100, 0);
        let max = data.len();
        let size = mutate(&mut data, input.len(), max, seed, |_, size, _| size / 2);
        assert!(size <= max, "seed {seed}");
    }
}

/// The stored inputs of a target.
fn stored(target: &str) -> Vec<Vec<u8>> {
    let files = KINDS
        .iter()
        .flat_map(|kind| entries(&format!("{kind}/{target}")));
    files
        .map(|file| fs::read(file).expect("a file of the repository"))
        .collect()
}

/// The entries of a folder of this package, in the order of their names; none if there is no such folder.
fn entries(folder: &str) -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Inputs that reach much code, and inputs that made a target fail.
const KINDS: [&str; 2] = ["corpus", "failures"];

//! Every stored input of every target: those that reach much code, and those that were found to fail. And a bounded run with inputs made of
//! them, the same in every run.

use std::fs;
use std::path::Path;

use rtorb_fuzz::{Draws, TARGETS, Target, mutate};

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
fn inputs_made_of_the_stored_ones_make_no_target_fail() {
    for target in TARGETS {
        let stored = stored(target.name);
        // A compiler takes 70 ms for an input, all others less than 2.
        let seeds = if target.name == "idl" { 60 } else { SEEDS };
        for seed in 0..seeds {
            let input = varied(*target, &stored, seed);
            let run = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(run.is_ok(), "{}, seed {seed}: {input:02x?}", target.name);
        }
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

/// The inputs of each target that are made of its stored ones, but for the compiler of IDL.
const SEEDS: u32 = 300;

/// The longest input of these, in bytes.
const VARIED_BYTES_MAX: usize = 1 << 16;

/// A stored input with a few changes that the seed draws: in a target of messages, also whole messages are changed, doubled and left out.
fn varied(target: Target, stored: &[Vec<u8>], seed: u32) -> Vec<u8> {
    let mut draws = Draws::new(u64::from(seed));
    let mut input = stored[draws.below(stored.len())].clone();
    let donor = &stored[draws.below(stored.len())];
    let mut size = input.len();
    input.resize(
        size.saturating_mul(2).clamp(64, VARIED_BYTES_MAX).max(size),
        0,
    );
    for _ in 0..=draws.below(4) {
        let seed = u32::try_from(draws.below(1 << 31)).unwrap_or_default();
        let max = input.len();
        size = if target.has_messages {
            mutate(&mut input, size, max, seed, |data, size, max| {
                alter(data, size, max, donor, seed)
            })
        } else {
            alter(&mut input, size, max, donor, seed)
        };
    }
    input.truncate(size);
    input
}

/// Changes the first `size` bytes of `data` once, which may become `max` bytes. Returns how many they are then.
fn alter(data: &mut [u8], size: usize, max: usize, donor: &[u8], seed: u32) -> usize {
    let mut draws = Draws::new(u64::from(seed) + 1);
    let at = draws.below(size.max(1));
    let run = (1 + draws.below(8)).min(size.saturating_sub(at));
    match draws.below(6) {
        0 if size > 0 => data[at] ^= 1 << draws.below(8),
        // What decoders take for counts.
        1 => {
            let extreme = [0, 1, 0x7f, 0x80, 0xfe, 0xff][draws.below(6)];
            data[at..at + run].fill(extreme);
        }
        2 => {
            data.copy_within(at + run..size, at);
            return size - run;
        }
        3 if size + run <= max => {
            data.copy_within(at..size, at + run);
            return size + run;
        }
        4 => return at,
        // The end of another input.
        _ if !donor.is_empty() => {
            let end = &donor[draws.below(donor.len())..];
            let end = &end[..end.len().min(max - at)];
            data[at..at + end.len()].copy_from_slice(end);
            return at + end.len();
        }
        _ => {}
    }
    size
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

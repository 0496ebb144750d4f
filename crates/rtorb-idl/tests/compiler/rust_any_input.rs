//! The back end generates or rejects any text that the checker accepts. It never panics.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use rtorb_idl::Options;
use rtorb_idl::rust::generate;

/// The texts of the right IDL files, split into words, punctuation and gaps.
fn texts() -> Vec<Vec<String>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = ["right", "rust"].into_iter().flat_map(|folder| {
        let entries =
            std::fs::read_dir(tests.join(folder)).expect("the folder is in the repository");
        entries.map(|entry| entry.expect("it can be listed").path())
    });
    let idl = files.filter(|path| path.extension().is_some_and(|extension| extension == "idl"));
    idl.map(|path| pieces(&std::fs::read_to_string(path).expect("it is text")))
        .collect()
}

fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for letter in text.chars() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        match pieces.last_mut() {
            Some(last) if is_word(letter) && last.ends_with(is_word) => last.push(letter),
            _ => pieces.push(letter.to_string()),
        }
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn accepted_text_is_generated_or_rejected(
        file in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), any::<Index>(), 0..3), 1..4),
    ) {
        let texts = texts();
        let mut pieces = file.get(&texts).clone();
        for (to, from, kind) in changes {
            let (to, from) = (to.index(pieces.len()), from.index(pieces.len()));
            match kind {
                0 => pieces[to] = pieces[from].clone(),
                1 => pieces.swap(to, from),
                _ => pieces.insert(to, pieces[from].clone()),
            }
        }
        let outcome = rtorb_idl::check_text("changed.idl", &pieces.concat(), &Options::default());
        if let Some(tree) = &outcome.tree {
            let _ = generate(tree);
        }
    }
}

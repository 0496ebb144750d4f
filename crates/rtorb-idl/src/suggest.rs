//! Suggests a known name for a misspelt one.

/// Returns the candidate most similar to `word`, if `word` may be a misspelling of it.
///
/// A slip is a letter too much, too little or wrong, or two letters swapped; case does not matter. A word of three letters or more
/// may have one slip, a word of six or more two, or if the first letter is right as much as the Jaro-Winkler measure allows. Then
/// the lengths differ by a third at most. A candidate within scopes is also compared without them. Of very many or very long names
/// only the first ones are compared, which bounds the time.
pub fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    if word.len() > NAME_BYTES_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let mut left = COMPARED_MAX;
    candidates
        .take_while(|candidate| {
            let cost = candidate.len().saturating_mul(word.len());
            left = left.saturating_sub(cost);
            left > 0
        })
        .filter(|candidate| *candidate != word)
        .map(|candidate| {
            let simple = candidate.rsplit("::").next().unwrap_or(candidate);
            let alike = likeness(&lower, candidate).max(likeness(&lower, simple));
            (alike, candidate)
        })
        // Of several that are equally similar, the first.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .filter(|(alike, _)| *alike >= ALIKE_AT_LEAST)
        .map(|(_, candidate)| candidate)
}

/// How similar a candidate is, from 0 to 1.
fn likeness(word: &str, candidate: &str) -> f64 {
    let candidate = candidate.to_lowercase();
    let slips = strsim::osa_distance(word, &candidate);
    let length = word.chars().count();
    match (length, slips) {
        (0..=2, _) => 0.0,
        (_, 0..=1) => 1.0,
        (3..=5, _) => 0.0,
        // A word with the same beginning.
        _ if length.abs_diff(candidate.chars().count()) > length / 3 => 0.0,
        (_, 2) => strsim::jaro_winkler(word, &candidate).max(ALIKE_AT_LEAST),
        _ if word.chars().next() != candidate.chars().next() => 0.0,
        _ => strsim::jaro_winkler(word, &candidate),
    }
}

/// Pairs of bytes: 50,000 names of twenty bytes each.
const COMPARED_MAX: usize = 20_000_000;
/// Nobody misspells a longer name, and to compare it takes long.
const NAME_BYTES_MAX: usize = 1_000;
/// Of 1. Unrelated names reach half of it by chance.
const ALIKE_AT_LEAST: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = [
            "long",
            "string",
            "interface",
            "boolean",
            "period",
            "worst",
            "const",
        ];
        for (word, meant) in [
            ("lnog", "long"),
            ("Strng", "string"),
            ("interfcae", "interface"),
            ("wrost", "worst"),
            ("periods", "period"),
        ] {
            assert_eq!(closest(word, known.into_iter()), Some(meant), "{word}");
        }
        for word in [
            "",
            "x",
            "int",
            "long",
            "valuetype",
            "frequency",
            "longitude",
            "acount",
        ] {
            assert_eq!(closest(word, known.into_iter()), None, "{word}");
        }
        let scoped = ["CosNaming::NameComponent", "Desk"];
        for word in ["NameComponet", "CosNaming::NameComponet"] {
            assert_eq!(closest(word, scoped.into_iter()), Some(scoped[0]), "{word}");
        }
    }
}

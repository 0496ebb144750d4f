//! Suggests a known name for a misspelt one.

/// Returns the candidate most similar to `word`, if `word` may be a misspelling of it: at most one letter of three is wrong, missing, too
/// much or swapped with its neighbour. Case does not matter. Long names are not compared.
pub(crate) fn closest<'c>(
    word: &str,
    candidates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    let lower = word.to_lowercase();
    candidates
        .filter(|name| *name != word && name.len().max(word.len()) <= NAME_BYTES_MAX)
        .map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name))
        .filter(|(slips, _)| slips * 3 <= lower.chars().count())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name)
}

/// The time of a comparison grows with the square of the length.
const NAME_BYTES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = ["InitRef", "ListenEndpoints", "id"];
        for (word, meant) in [
            ("initrfe", "InitRef"),
            ("ListenEndpoint", "ListenEndpoints"),
        ] {
            assert_eq!(closest(word, known.into_iter()), Some(meant), "{word}");
        }
        for word in ["", "ix", "id", "InitialReference"] {
            assert_eq!(closest(word, known.into_iter()), None, "{word}");
        }
    }
}

//! Suggests a known name for an unknown one.

/// The candidate closest to `word`, if `word` may be a misspelling of it.
pub(crate) fn closest<'c>(
    word: &str,
    candidates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    let allowed = match word.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        _ => 2,
    };
    let near = candidates.filter(|candidate| *candidate != word);
    let near = near.map(|candidate| {
        (
            distance(&word.to_lowercase(), &candidate.to_lowercase()),
            candidate,
        )
    });
    near.filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, found)| found)
}

/// How many letters to insert, remove, change or swap with a neighbour to turn one word into the other.
fn distance(one: &str, other: &str) -> usize {
    let shortened = |word: &str| word.chars().take(LENGTH_MAX).collect::<String>();
    strsim::osa_distance(&shortened(one), &shortened(other))
}

/// How many letters are compared.
const LENGTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_close_names() {
        let known = ["long", "string", "interface", "boolean"];
        for (word, meant) in [
            ("lnog", "long"),
            ("Strng", "string"),
            ("interfcae", "interface"),
        ] {
            assert_eq!(closest(word, known.into_iter()), Some(meant), "{word}");
        }
        for word in ["x", "int", "long", "valuetype"] {
            assert_eq!(closest(word, known.into_iter()), None, "{word}");
        }
    }
}

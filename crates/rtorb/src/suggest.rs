//! Errors about unknown names: a known one that is similar, or else all.

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

/// Returns the error for a text that is none of the `known` ones, of which each is a `what`.
pub(crate) fn unknown(text: &str, what: &str, known: &[&str]) -> String {
    match closest(text, known.iter().copied()) {
        Some(near) => format!("`{text}` is not a {what}; did you mean `{near}`?"),
        None => format!("`{text}` is not a {what}; there are {}", known.join(", ")),
    }
}

/// Breaks a text that has a list into lines at its spaces.
pub(crate) fn wrapped(text: &str) -> String {
    let mut wrapped = String::new();
    let mut line_begins = 0;
    for word in text.split(' ') {
        if wrapped.len() - line_begins + word.len() > LINE_BYTES_MAX {
            line_begins = wrapped.len();
            wrapped.push_str("\n  ");
        } else if !wrapped.is_empty() {
            wrapped.push(' ');
        }
        wrapped.push_str(word);
    }
    wrapped
}

/// The bytes of a line, if no word is longer.
const LINE_BYTES_MAX: usize = 90;
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

    #[test]
    fn a_list_is_broken_at_its_spaces() {
        let text = format!("there are {}", ["a_name"; 40].join(", "));
        let wrapped = wrapped(&text);
        assert_eq!(wrapped.replace("\n  ", " "), text);
        let lengths = wrapped.lines().map(str::len);
        assert!(
            lengths.clone().count() > 3 && lengths.max() <= Some(LINE_BYTES_MAX + 3),
            "{wrapped}"
        );
    }
}

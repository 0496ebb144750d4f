//! The name that somebody may have meant.

/// The name that is most like `wrong`, if one is like it at all.
pub(crate) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let likeness = |name: &str| {
        let simple = name.rsplit("::").next().unwrap_or(name);
        strsim::jaro_winkler(wrong, simple).max(strsim::jaro_winkler(wrong, name))
    };
    let scored = names.map(|name| (likeness(name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > LIKE).then_some(best.1)
}

/// Names below this have little in common.
const LIKE: f64 = 0.8;

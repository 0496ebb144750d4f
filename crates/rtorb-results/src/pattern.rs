//! Patterns of labels, as declarations write them: which cells something is of, and with which other labels to look beside them.

use crate::labels::{LabelValue, Labels};

/// Whether labels have what a pattern asks for: alternatives separated by `|`, each with terms separated by commas, all of which
/// hold. A term is `label=value`, `label!=value`, `label>number`, `label` (it is there) or `!label` (it is not).
///
/// A label that is missing is unequal to every value, and above no number.
#[must_use]
pub fn matches(pattern: &str, labels: &Labels) -> bool {
    let mut alternatives = pattern.split('|');
    alternatives.any(|terms| self::terms(terms).all(|term| term.holds(labels)))
}

/// The labels that a pattern gives a number, with the numbers that they have here, if the labels match it at some numbers; `None`
/// otherwise. So a declaration can be compared with a run that has other levels of the same factors.
#[must_use]
pub fn level(pattern: &str, labels: &Labels) -> Option<Labels> {
    pattern.split('|').find_map(|terms| level_of(terms, labels))
}

fn level_of(terms: &str, labels: &Labels) -> Option<Labels> {
    let mut level = Labels::new();
    for term in self::terms(terms) {
        if let Term::Equal(name, LabelValue::Number(_)) = term {
            let found = labels.get(name)?;
            found.number()?;
            level.insert(name.to_owned(), found.clone());
        } else if !term.holds(labels) {
            return None;
        }
    }
    Some(level)
}

/// The values that every label of the pattern must equal; of the first alternative.
#[must_use]
pub fn wanted(pattern: &str) -> Labels {
    let first = pattern.split('|').next().unwrap_or_default();
    let equal = terms(first).filter_map(|term| match term {
        Term::Equal(name, value) => Some((name.to_owned(), value)),
        _ => None,
    });
    equal.collect()
}

/// Whether labels that are only planned may become ones that match: a part of a sample has its labels when it was measured.
/// `is_of_part` returns whether a label that is not planned may be one of those.
pub(crate) fn may_match(
    pattern: &str,
    planned: &Labels,
    is_of_part: impl Fn(&str) -> bool,
) -> bool {
    let mut alternatives = pattern.split('|');
    alternatives.any(|terms| self::terms(terms).all(|term| term.may_hold(planned, &is_of_part)))
}

/// The labels with other values: `label=value` sets one, `-label` takes one away.
pub(crate) fn changed(labels: &Labels, change: &str) -> Labels {
    let mut all = labels.clone();
    for term in change
        .split(',')
        .map(str::trim)
        .filter(|term| !term.is_empty())
    {
        match (term.strip_prefix('-'), term.split_once('=')) {
            (Some(name), _) => {
                all.remove(name);
            }
            (None, Some((name, value))) => {
                all.insert(name.trim().to_owned(), value_of(value));
            }
            (None, None) => debug_assert!(false, "no change of labels: {term:?}"),
        }
    }
    all
}

/// The text with the values of labels: `{name}`; `{ over |name}` is nothing if there is no such label, and otherwise stands before
/// its value.
pub(crate) fn filled(template: &str, labels: &Labels) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('{') {
        let (name, after) = from.split_once('}').unwrap_or((from, ""));
        let (prefix, name) = name.split_once('|').unwrap_or(("", name));
        text.push_str(before);
        if let Some(value) = labels.get(name) {
            text.push_str(prefix);
            text.push_str(&value.to_string());
        }
        rest = after;
    }
    text + rest
}

enum Term<'a> {
    Equal(&'a str, LabelValue),
    Unequal(&'a str, LabelValue),
    Above(&'a str, i64),
    Has(&'a str),
    Lacks(&'a str),
}

fn terms(text: &str) -> impl Iterator<Item = Term<'_>> {
    let each = text
        .split(',')
        .map(str::trim)
        .filter(|term| !term.is_empty());
    each.map(|term| {
        if let Some((name, value)) = term.split_once("!=") {
            return Term::Unequal(name.trim(), value_of(value));
        }
        if let Some((name, value)) = term.split_once('=') {
            return Term::Equal(name.trim(), value_of(value));
        }
        let above = term.split_once('>');
        if let Some((name, number)) = above {
            let number = number.trim().parse();
            return Term::Above(name.trim(), number.unwrap_or(i64::MAX));
        }
        match term.strip_prefix('!') {
            Some(name) => Term::Lacks(name),
            None => Term::Has(term),
        }
    })
}

impl Term<'_> {
    fn holds(&self, labels: &Labels) -> bool {
        match self {
            Self::Equal(name, value) => labels.get(*name) == Some(value),
            Self::Unequal(name, value) => labels.get(*name) != Some(value),
            Self::Above(name, number) => {
                let found = labels.get(*name).and_then(LabelValue::number);
                found.is_some_and(|found| found > *number)
            }
            Self::Has(name) => labels.contains_key(*name),
            Self::Lacks(name) => !labels.contains_key(*name),
        }
    }

    fn may_hold(&self, planned: &Labels, is_of_part: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Equal(name, _) | Self::Above(name, _) | Self::Has(name)
                if !planned.contains_key(*name) =>
            {
                is_of_part(name)
            }
            _ => self.holds(planned),
        }
    }
}

fn value_of(text: &str) -> LabelValue {
    let text = text.trim();
    match (text.parse::<bool>(), text.parse::<i64>()) {
        (Ok(flag), _) => LabelValue::Bool(flag),
        (_, Ok(number)) => LabelValue::Number(number),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels;

    #[test]
    fn a_pattern_selects_by_each_kind_of_term() {
        let of = labels([("role", "high".into()), ("low_clients", 5usize.into())]);
        for held in [
            "",
            "role=high",
            "role=high, low_clients>4",
            "role!=low",
            "role, !part",
            "role=low | low_clients=5",
            "part!=call",
        ] {
            assert!(matches(held, &of), "{held}");
        }
        for unheld in ["role=low", "low_clients>5", "part", "!role", "part>0"] {
            assert!(!matches(unheld, &of), "{unheld}");
        }
    }

    #[test]
    fn a_pattern_is_compared_at_whatever_level() {
        let of = labels([("role", "high".into()), ("low_clients", 5usize.into())]);
        let five = labels([("low_clients", 5usize.into())]);
        assert_eq!(level("role=high, low_clients=50", &of), Some(five));
        assert_eq!(level("role=high", &of), Some(Labels::new()));
        for unheld in [
            "role=low, low_clients=5",
            "hz=5",
            "role=5",
            "!role, low_clients=50",
        ] {
            assert_eq!(level(unheld, &of), None, "{unheld}");
        }
    }

    #[test]
    fn planned_labels_may_get_those_of_a_part() {
        let planned = labels([("preset", "tao".into())]);
        let may_match = |pattern| super::may_match(pattern, &planned, |label| label != "lane");
        assert!(may_match("preset=tao, part=call, count>0"));
        assert!(!may_match("preset=omniORB, part=call"));
        // Other cells are planned with a lane: this one has none.
        assert!(!may_match("preset=tao, part=call, lane=1"));
    }

    #[test]
    fn labels_change_and_fill_texts() {
        let of = labels([("transport", "shm".into()), ("low_clients", 5usize.into())]);
        let alone = changed(&of, "low_clients=0, -transport");
        assert_eq!(alone, labels([("low_clients", 0usize.into())]));
        let template = "{low_clients} clients{ over |transport}{, |load}";
        assert_eq!(filled(template, &of), "5 clients over shm");
        assert_eq!(filled(template, &alone), "0 clients");
    }
}

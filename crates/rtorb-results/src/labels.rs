//! Labels: what distinguishes one series from another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names to values; sorted, so that two runs compare line by line.
pub type Labels = BTreeMap<String, LabelValue>;

/// The value of a label or a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LabelValue {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// A name.
    Text(String),
}

impl std::fmt::Display for LabelValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(formatter),
            Self::Number(value) => value.fmt(formatter),
            Self::Text(value) => value.fmt(formatter),
        }
    }
}

impl LabelValue {
    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

impl From<bool> for LabelValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<usize> for LabelValue {
    fn from(value: usize) -> Self {
        Self::Number(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u64> for LabelValue {
    fn from(value: u64) -> Self {
        Self::Number(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for LabelValue {
    fn from(value: u32) -> Self {
        Self::Number(i64::from(value))
    }
}

impl From<&str> for LabelValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for LabelValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// Makes labels from pairs: `labels([("operation", "long".into())])`.
#[must_use]
pub fn labels<const N: usize>(pairs: [(&str, LabelValue); N]) -> Labels {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// These labels, some of them with other values.
#[must_use]
pub fn labels_with<const N: usize>(labels: &Labels, others: [(&str, LabelValue); N]) -> Labels {
    let mut all = labels.clone();
    all.extend(self::labels(others));
    all
}

/// These labels without those of some names.
#[must_use]
pub fn labels_without(labels: &Labels, names: &[&str]) -> Labels {
    let others = labels.iter();
    let others = others.filter(|(name, _)| !names.contains(&name.as_str()));
    others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether `part` has no label that `whole` lacks or has with another value.
#[must_use]
pub fn is_part(part: &Labels, whole: &Labels) -> bool {
    let mut labels = part.iter();
    labels.all(|(name, value)| whole.get(name) == Some(value))
}

/// Each of these once, in the order in which they come.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

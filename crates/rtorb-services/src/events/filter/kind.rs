//! The two forms of subscriptions.

use serde::{Deserialize, Serialize};

/// The form in which a channel reads the lists of its consumers; [the filter](super) describes both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterKind {
    /// A designator begins a group, which ends where the next begins.
    #[default]
    Basic,
    /// A designator says how many children it has.
    Prefix,
}

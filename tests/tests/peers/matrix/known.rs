//! The known differences, from `known_differences.toml`.

use serde::Deserialize;

use super::Cell;

/// All of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) difference: Vec<Difference>,
}

/// Cells that differ for one reason. An empty list means all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Difference {
    /// The operations of the types.
    pub(super) types: Vec<String>,
    #[serde(default)]
    pub(super) clients: Vec<String>,
    #[serde(default)]
    pub(super) servers: Vec<String>,
    #[serde(default)]
    pub(super) versions: Vec<String>,
    /// Whether the calls are recorded; if it is missing, both.
    pub(super) recorded: Option<bool>,
    /// What the client may say.
    pub(super) seen: Vec<String>,
    pub(super) reason: String,
}

impl Known {
    /// Reads the file.
    pub(super) fn read() -> Self {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/peers/matrix/known_differences.toml"
        );
        let text = std::fs::read_to_string(file).expect("it is there");
        toml::from_str(&text).unwrap_or_else(|e| panic!("known_differences.toml: {e}"))
    }

    /// The difference that a cell shows.
    pub(super) fn of(&self, cell: &Cell) -> Option<&Difference> {
        self.difference
            .iter()
            .find(|it| it.is_at(cell) && it.seen.contains(&cell.said))
    }

    /// Whether the cell has to show a difference.
    pub(super) fn of_place(&self, cell: &Cell) -> bool {
        self.difference.iter().any(|it| it.is_at(cell))
    }
}

impl Difference {
    /// Whether the cell has to show this difference.
    pub(super) fn is_at(&self, cell: &Cell) -> bool {
        let is_in = |list: &[String], it: &String| list.is_empty() || list.contains(it);
        is_in(&self.types, &cell.operation)
            && is_in(&self.clients, &cell.client)
            && is_in(&self.servers, &cell.server)
            && is_in(&self.versions, &cell.version)
            && self.recorded.is_none_or(|it| it == cell.is_recorded)
    }
}

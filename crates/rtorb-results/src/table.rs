//! Tables of text.

use std::collections::BTreeSet;

/// A table of text, ready for a terminal or a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What each column shows; the first names the rows.
    pub head: Vec<String>,
    /// The rows, each as long as the head. A cell with nothing measured is empty.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a cell for each row and each column, which stand behind their names.
    #[must_use]
    pub fn crossed<R, C>(
        corner: String,
        rows: &[(String, R)],
        columns: &[(String, C)],
        cell: impl Fn(&R, &C) -> String,
    ) -> Self {
        let row = |(name, row): &(String, R)| {
            let cells = columns.iter().map(|(_, column)| cell(row, column));
            std::iter::once(name.clone()).chain(cells).collect()
        };
        let heads = columns.iter().map(|(name, _)| name.clone());
        Self {
            head: std::iter::once(corner).chain(heads).collect(),
            rows: rows.iter().map(row).collect(),
        }
    }

    /// The tables that it consists of: rows that have no column in common stand in tables of their own.
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        let is_filled = |row: &[String], column: usize| !row[column].is_empty();
        let mut groups: Vec<BTreeSet<usize>> = Vec::new();
        for row in &self.rows {
            let mut columns: BTreeSet<usize> = (1..self.head.len())
                .filter(|column| is_filled(row, *column))
                .collect();
            let (joined, apart): (Vec<_>, Vec<_>) = groups
                .into_iter()
                .partition(|group| !group.is_disjoint(&columns));
            columns.extend(joined.into_iter().flatten());
            groups = apart;
            groups.push(columns);
        }
        groups.sort();
        groups
            .iter()
            .filter(|columns| !columns.is_empty())
            .map(|columns| self.part(columns))
            .collect()
    }

    /// Only these columns, behind the names of the rows that have something in them.
    #[must_use]
    pub fn part(&self, columns: &BTreeSet<usize>) -> Self {
        let of = |cells: &[String]| -> Vec<String> {
            std::iter::once(0)
                .chain(columns.iter().copied())
                .map(|column| cells[column].clone())
                .collect()
        };
        let has_any = |row: &&Vec<String>| columns.iter().any(|column| !row[*column].is_empty());
        Self {
            head: of(&self.head),
            rows: self
                .rows
                .iter()
                .filter(has_any)
                .map(|row| of(row))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 4]]) -> Table {
        let owned = |cells: &[&str; 4]| cells.map(str::to_owned).to_vec();
        Table {
            head: owned(&["us", "a", "b", "c"]),
            rows: rows.iter().map(owned).collect(),
        }
    }

    #[test]
    fn rows_without_a_common_column_stand_apart() {
        let mixed = table(&[
            ["program", "1", "", ""],
            ["server", "", "2", "3"],
            ["client", "", "4", ""],
        ]);
        let parts = mixed.parts();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].head, ["us", "a"]);
        assert_eq!(parts[0].rows, [["program", "1"]]);
        assert_eq!(parts[1].head, ["us", "b", "c"]);
        assert_eq!(parts[1].rows, [["server", "2", "3"], ["client", "4", ""]]);
        let joined = table(&[["x", "1", "", ""], ["y", "", "2", "3"], ["z", "1", "", "3"]]);
        assert_eq!(joined.parts(), std::slice::from_ref(&joined));
    }
}

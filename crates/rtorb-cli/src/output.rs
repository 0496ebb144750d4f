//! Text to standard output, such that a reader who has seen enough (`rtorb ... | head`) is no error.

use std::io::{self, ErrorKind, Write};

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, ContentArrangement, Table as Drawn};
use rtorb_lab::summary::Table;
use serde::Serialize;

/// Prints a line.
pub(crate) fn line(text: impl AsRef<str>) -> anyhow::Result<()> {
    print(&format!("{}\n", text.as_ref()))
}

/// Prints a value as JSON, indented.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Prints a table: names to the left, numbers to the right.
pub(crate) fn print_table(table: &Table) -> anyhow::Result<()> {
    let mut drawn = Drawn::new();
    drawn.load_style(if is_terminal() {
        UTF8_HORIZONTAL_ONLY
    } else {
        ASCII_MARKDOWN
    });
    drawn.set_content_arrangement(ContentArrangement::Dynamic);
    drawn.set_header(&table.head);
    for row in &table.rows {
        drawn.add_row(row);
    }
    for column in drawn.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    line(drawn.trim_fmt())
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&io::stdout())
}

/// How many columns a line of text may have: those of the terminal, or 80, within what is readable.
pub(crate) fn columns() -> usize {
    Drawn::new()
        .width()
        .map_or(80, usize::from)
        .clamp(COLUMNS_MIN, COLUMNS_MAX)
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

const COLUMNS_MIN: usize = 40;
/// Longer lines are hard to read.
const COLUMNS_MAX: usize = 100;

//! A table as CSV.

use std::io;

use super::{Cell, ExportedTable};

pub(super) fn encode(table: &ExportedTable) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(table.columns.iter().map(|column| &column.name))?;
    for row in &table.rows {
        writer.write_record(row.iter().map(text))?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Missing => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Truth(truth) => truth.to_string(),
    }
}

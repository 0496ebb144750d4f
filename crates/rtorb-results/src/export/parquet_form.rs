//! A table as Parquet: one row group, each column of its own type, and any cell may be null.

use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{Cell, Column, ExportedTable, Kind};

pub(super) fn encode(table: &ExportedTable) -> io::Result<Vec<u8>> {
    write(table).map_err(io::Error::other)
}

fn write(table: &ExportedTable) -> Result<Vec<u8>, ParquetError> {
    let fields = table.columns.iter().map(field);
    let schema = Type::group_type_builder(table.name)
        .with_fields(fields.collect::<Result<_, _>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("rtorb ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut rows = file.next_row_group()?;
    let mut index = 0;
    while let Some(mut writer) = rows.next_column()? {
        let cells = table.rows.iter().map(|row| &row[index]);
        write_column(&mut writer, table.columns[index].kind, cells)?;
        writer.close()?;
        index += 1;
    }
    rows.close()?;
    file.into_inner()
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integer => (PhysicalType::INT64, None),
        Kind::Real => (PhysicalType::DOUBLE, None),
        Kind::Truth => (PhysicalType::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn write_column<'a>(
    writer: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<(), ParquetError> {
    match kind {
        Kind::Text => write_cells::<ByteArrayType>(writer, cells, |cell| match cell {
            Cell::Text(text) => Some(ByteArray::from(text.as_str())),
            _ => None,
        }),
        Kind::Integer => write_cells::<Int64Type>(writer, cells, |cell| match cell {
            Cell::Integer(number) => Some(*number),
            _ => None,
        }),
        Kind::Real => write_cells::<DoubleType>(writer, cells, |cell| match cell {
            Cell::Real(number) => Some(*number),
            _ => None,
        }),
        Kind::Truth => write_cells::<BoolType>(writer, cells, |cell| match cell {
            Cell::Truth(truth) => Some(*truth),
            _ => None,
        }),
    }
}

/// Writes the values that are there, and for every cell its definition level: 1 is a value, 0 is null.
fn write_cells<'a, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let found = value(cell);
        debug_assert!(found.is_some() || *cell == Cell::Missing, "{cell:?}");
        levels.push(i16::from(found.is_some()));
        values.extend(found);
    }
    writer
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    Ok(())
}

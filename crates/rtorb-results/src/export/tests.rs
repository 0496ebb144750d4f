use super::*;
use crate::synthetic;
use crate::{Derived, labels};

fn two_runs() -> Vec<Run> {
    let run = |id: &str| {
        let first = labels([("operation", "a, \"b\"".into()), ("len", 7u64.into())]);
        let second = labels([("operation", "void".into()), ("real_time", true.into())]);
        let mut series = synthetic::series(first, [1_000, 2_000, 3_000]);
        series.rounds_p50 = vec![1_000.5, 2_000.0];
        series.calls_per_second = Some(12.25);
        let others = synthetic::series(second.clone(), 1..=100);
        let mut results = synthetic::results("os/mutex", vec![series, others]);
        results.derived = vec![Derived {
            name: "beyond".to_owned(),
            labels: second,
            unit: "ratio".to_owned(),
            value: 0.1 + 0.2,
            rounds: vec![0.25, 0.5],
        }];
        synthetic::run(id, vec![results])
    };
    vec![run("run-1"), run("run-2")]
}

#[test]
fn csv_reads_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let tables = tables(&two_runs());
    let paths = write(&tables, Format::Csv, folder.path()).unwrap();
    for (table, path) in tables.iter().zip(&paths) {
        let mut reader = csv::Reader::from_path(path).unwrap();
        let names: Vec<String> = reader
            .headers()
            .unwrap()
            .iter()
            .map(str::to_owned)
            .collect();
        let expected: Vec<_> = table
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect();
        assert_eq!(names, expected);
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), table.rows.len());
        for (read, row) in rows.iter().zip(&table.rows) {
            for (text, (cell, column)) in read.iter().zip(row.iter().zip(&table.columns)) {
                assert_eq!(parsed(text, column.kind), *cell, "{}", column.name);
            }
        }
    }
}

fn parsed(text: &str, kind: Kind) -> Cell {
    match (text, kind) {
        ("", _) => Cell::Missing,
        (_, Kind::Text) => Cell::Text(text.to_owned()),
        (_, Kind::Integer) => Cell::Integer(text.parse().unwrap()),
        (_, Kind::Real) => Cell::Real(text.parse().unwrap()),
        (_, Kind::Truth) => Cell::Truth(text.parse().unwrap()),
    }
}

#[test]
fn every_row_names_its_run_and_labels_keep_their_types() {
    let tables = tables(&two_runs());
    let series = &tables[0];
    let column = |name: &str| {
        series
            .columns
            .iter()
            .position(|column| column.name == name)
            .unwrap()
    };
    assert_eq!(series.rows.len(), 4);
    assert_eq!(
        series.rows[3][column("run_folder")],
        Cell::Text("run-2".to_owned())
    );
    assert_eq!(series.columns[column("label_len")].kind, Kind::Integer);
    assert_eq!(series.columns[column("label_real_time")].kind, Kind::Truth);
    assert_eq!(series.rows[0][column("label_len")], Cell::Integer(7));
    assert_eq!(series.rows[1][column("label_len")], Cell::Missing);
    assert_eq!(series.rows[1][column("number")], Cell::Integer(1));
}

#[test]
fn a_label_of_several_kinds_is_text() {
    let of = |value| synthetic::series(labels([("len", value)]), [1]);
    let results = synthetic::results("os/mutex", vec![of(7u64.into()), of("all".into())]);
    let tables = tables(&[synthetic::run("a", vec![results])]);
    let column = tables[0]
        .columns
        .iter()
        .position(|column| column.name == "label_len")
        .unwrap();
    assert_eq!(tables[0].rows[0][column], Cell::Text("7".to_owned()));
}

#[test]
fn tables_without_rows_are_files_with_columns() {
    let folder = tempfile::tempdir().unwrap();
    let run = synthetic::run("a", vec![synthetic::results("os/mutex", Vec::new())]);
    let tables = tables(&[run]);
    let series = write(&tables, Format::Csv, folder.path())
        .unwrap()
        .remove(0);
    assert!(
        std::fs::read_to_string(series)
            .unwrap()
            .starts_with("run,run_folder,")
    );
}

#[cfg(feature = "parquet")]
mod parquet_form {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::*;

    #[test]
    fn parquet_reads_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let tables = tables(&two_runs());
        let paths = write(&tables, Format::Parquet, folder.path()).unwrap();
        assert_eq!(paths.len(), 6);
        for (table, path) in tables.iter().zip(&paths) {
            let (names, rows) = read_parquet(path);
            let expected: Vec<_> = table.columns.iter().map(|column| &column.name).collect();
            assert_eq!(names.iter().collect::<Vec<_>>(), expected);
            assert!(!rows.is_empty(), "{}", table.name);
            assert_eq!(rows, table.rows, "{}", table.name);
        }
    }

    #[test]
    fn parquet_without_rows_has_its_columns() {
        let folder = tempfile::tempdir().unwrap();
        let run = synthetic::run("a", vec![synthetic::results("os/mutex", Vec::new())]);
        for path in write(&tables(&[run]), Format::Parquet, folder.path()).unwrap() {
            let (names, rows) = read_parquet(&path);
            assert!(rows.is_empty() && names.len() > 12);
        }
    }

    /// What a reader of the file finds, with the cells as our own.
    fn read_parquet(path: &Path) -> (Vec<String>, Vec<Vec<Cell>>) {
        let file = std::fs::File::open(path).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let fields = reader.metadata().file_metadata().schema().get_fields();
        let names = fields.iter().map(|field| field.name().to_owned()).collect();
        let cells = |row: Row| {
            row.get_column_iter()
                .map(|(_, field)| cell(field))
                .collect()
        };
        let rows = reader.get_row_iter(None).unwrap();
        (names, rows.map(|row| cells(row.unwrap())).collect())
    }

    fn cell(field: &Field) -> Cell {
        match field {
            Field::Null => Cell::Missing,
            Field::Str(text) => Cell::Text(text.clone()),
            Field::Long(number) => Cell::Integer(*number),
            Field::Double(number) => Cell::Real(*number),
            Field::Bool(truth) => Cell::Truth(*truth),
            other => panic!("{other:?}"),
        }
    }
}

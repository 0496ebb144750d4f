//! The timing of annotated operations, as tools read it.

use std::fmt::Write as _;
use std::path::PathBuf;

use rtorb_idl::timings;

#[test]
fn annotated_operations_are_listed_for_each_interface() {
    let found = timings(&["tests/right/timing.idl".into()], &[]).expect("the file is right");
    let mut told = String::new();
    for operation in &found {
        writeln!(told, "{operation:?}").expect("there is memory");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn files_without_annotations_have_no_timings() {
    let files = ["tests/right/interfaces.idl", "tests/right/annotations.idl"];
    let found = timings(&files.map(PathBuf::from), &[]).expect("the files are right");
    assert_eq!(found, []);
}

#[test]
fn included_files_are_found_in_include_directories() {
    let folder = tempfile::tempdir().expect("there is a disk");
    let (inner, outer) = (folder.path().join("inner"), folder.path().join("outer.idl"));
    std::fs::create_dir(&inner).expect("a folder");
    let base = "interface Base { @deadline(\"1ms\") void f(); };\n";
    std::fs::write(inner.join("base.idl"), base).expect("a file");
    std::fs::write(
        &outer,
        "#include <base.idl>\ninterface Derived : Base {};\n",
    )
    .expect("a file");
    let files = [outer];
    let names = timings(&files, std::slice::from_ref(&inner)).map(|found| {
        found
            .into_iter()
            .map(|operation| operation.operation)
            .collect::<Vec<_>>()
    });
    assert_eq!(names.expect("it is found"), ["Base::f", "Derived::f"]);
    let said = timings(&files, &[])
        .expect_err("it is not there")
        .to_string();
    assert!(
        said.contains("base.idl") && said.contains("outer.idl:1"),
        "{said}"
    );
}

#[test]
fn errors_are_returned_with_their_place() {
    let files = ["tests/wrong/timing_value.idl".into()];
    let said = timings(&files, &[]).expect_err("it is wrong").to_string();
    assert!(
        said.contains("timing_value.idl:2:3") && said.contains("has no unit"),
        "{said}"
    );
    let nowhere = ["tests/nowhere.idl".into()];
    let said = timings(&nowhere, &[])
        .expect_err("there is no file")
        .to_string();
    assert!(said.contains("nowhere.idl"), "{said}");
}

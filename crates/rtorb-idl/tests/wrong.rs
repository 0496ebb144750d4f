//! Rejects each file in `wrong/` with messages that tell a new user how to correct it.

use std::path::PathBuf;

use rtorb_idl::{Options, check};

#[test]
fn explains_wrong_files() {
    insta::glob!("wrong/*.idl", |path| {
        let path =
            PathBuf::from("tests/wrong").join(path.file_name().expect("the glob names files"));
        let outcome = check(std::slice::from_ref(&path), &Options::default());
        assert!(outcome.tree.is_none(), "{} was accepted", path.display());
        insta::assert_snapshot!(outcome.render(false));
    });
}

#[test]
fn every_error_has_a_valid_place() {
    insta::glob!("wrong/*.idl", |path| {
        let outcome = check(&[path.to_owned()], &Options::default());
        for report in outcome.reports() {
            let place = report.place.expect("all these errors are in a file");
            assert!(
                place.line > 0 && place.column > 0,
                "{}: {}",
                path.display(),
                report.message
            );
            assert!(
                !place.source.is_empty() || place.column == 1,
                "{}: {}",
                path.display(),
                report.message
            );
        }
    });
}

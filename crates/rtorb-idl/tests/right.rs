//! Accepts each file in `right/` and compares its tree with a snapshot.

mod dump;

use std::path::Path;

use rtorb_idl::{Options, check};

#[test]
fn accepts_right_files() {
    insta::glob!("right/*.idl", |path| {
        let path = Path::new("tests/right").join(path.file_name().expect("the glob names files"));
        let outcome = check(&[path], &Options::default());
        let tree = outcome
            .tree
            .as_ref()
            .unwrap_or_else(|| panic!("refused:\n{}", outcome.render(false)));
        insta::assert_snapshot!(outcome.render(false) + &dump::dump(tree));
    });
}

#[test]
fn checks_a_text_without_a_file() {
    let outcome = rtorb_idl::check_text("inline.idl", "struct S { long x; };", &Options::default());
    assert_eq!(
        dump::dump(&outcome.tree.expect("it is right")),
        "struct S  [IDL:S:1.0]\n  x: Long\n"
    );
}

#[test]
fn checks_several_files_as_one_specification() {
    let files = [
        "right/include/shared.idl",
        "right/preprocessor.idl",
        "right/include/shared.idl",
    ];
    let paths = files.map(|file| Path::new("tests").join(file));
    let outcome = check(&paths, &Options::default());
    let tree = outcome
        .tree
        .as_ref()
        .unwrap_or_else(|| panic!("refused:\n{}", outcome.render(false)));
    assert!(
        dump::dump(tree).starts_with("struct Shared  [IDL:shared.org/Shared:1.0]\n"),
        "it is given, so not included"
    );
}

#[test]
fn uses_macros_and_directories_of_the_options() {
    let text = "#include <shared.idl>\nstruct S { Shared x; };\n#if LEVEL != 3 || !defined(ON) || defined(OFF)\n#error wrong\n#endif\n#ifdef _PRE_3_0_COMPILER_\n#error old\n#endif\n";
    let options = Options {
        include_dirs: vec!["tests/nowhere".into(), "tests/right/include".into()],
        defines: ["LEVEL=3", "ON", "OFF"].map(str::to_owned).to_vec(),
        undefines: ["OFF", "_PRE_3_0_COMPILER_"].map(str::to_owned).to_vec(),
        ..Options::default()
    };
    let outcome = rtorb_idl::check_text("inline.idl", text, &options);
    assert!(outcome.tree.is_some(), "{}", outcome.render(false));
}

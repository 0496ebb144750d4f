//! The Rust back end: generated text, rejected constructs, and their list in `docs/mapping.md`.

use std::path::{Path, PathBuf};

use rtorb_idl::rust::{NOT_GENERATED, generate};
use rtorb_idl::{Diagnostic, Options, Outcome};

#[test]
fn generates() {
    insta::glob!("rust/*.idl", |path| insta::assert_snapshot!(text_of(path)));
}

#[test]
fn generates_the_benchmark_interface() {
    insta::assert_snapshot!("cubit", text_of(&crate_file("../../idl/cubit.idl")));
}

#[test]
fn generation_is_deterministic() {
    let cubit = crate_file("../../idl/cubit.idl");
    assert_eq!(text_of(&cubit), text_of(&cubit));
}

#[test]
fn unsupported_constructs_are_rejected_with_place_and_help() {
    let mut refused = Vec::new();
    insta::glob!("rust/refused/*.idl", |path| {
        let outcome = check(path);
        let diagnostics = diagnostics_of(&outcome);
        assert!(
            diagnostics
                .iter()
                .all(|one| one.location().is_some() && !one.help.is_empty())
        );
        refused.push(
            diagnostics
                .iter()
                .map(|one| one.message.clone())
                .collect::<String>(),
        );
        insta::assert_snapshot!(render(&diagnostics, &outcome));
    });
    for not_generated in NOT_GENERATED {
        let construct = not_generated.construct;
        assert!(
            refused.iter().any(|message| message.contains(construct)),
            "no file is refused for its {construct}"
        );
    }
}

#[test]
fn the_mapping_page_lists_unsupported_constructs() {
    let page = std::fs::read_to_string(crate_file("../../docs/mapping.md"))
        .expect("the page is in the repository");
    let (_, list) = page
        .split_once("## What is not generated yet")
        .expect("the page has that section");
    let listed: Vec<&str> = list
        .lines()
        .filter_map(|line| line.strip_prefix("* `"))
        .filter_map(|line| line.split_once('`').map(|(construct, _)| construct))
        .collect();
    let (others, ours): (Vec<&str>, Vec<&str>) =
        listed.iter().partition(|construct| **construct == "bitset");
    assert_eq!(
        others,
        ["bitset"],
        "what the checker calls neither a value nor an interface has one line"
    );
    assert_eq!(
        ours,
        NOT_GENERATED.map(|not_generated| not_generated.construct)
    );
}

#[test]
fn colliding_names_are_rejected_with_both_places() {
    insta::glob!("rust/collisions/*.idl", |path| {
        let outcome = check(path);
        let diagnostics = diagnostics_of(&outcome);
        assert!(
            diagnostics
                .iter()
                .all(|diagnostic| diagnostic.labels.len() == 2)
        );
        insta::assert_snapshot!(render(&diagnostics, &outcome));
    });
}

#[test]
fn an_interface_may_have_hundreds_of_operations() {
    let operations: String = (0..300)
        .map(|number| format!("long op_{number}(in long l);\n"))
        .collect();
    let text = format!("interface Big {{ {operations} }};");
    let outcome = rtorb_idl::check_text("big.idl", &text, &Options::default());
    let generated =
        generate(outcome.tree.as_ref().expect("the text is right")).expect("nothing is refused");
    assert!(generated.contains("OperationTable<300, 128, 2048>"));
}

fn text_of(path: &Path) -> String {
    let outcome = check(path);
    generate(outcome.tree.as_ref().expect("checked"))
        .unwrap_or_else(|errors| panic!("{}", render(&errors, &outcome)))
}

fn diagnostics_of(outcome: &Outcome) -> Vec<Diagnostic> {
    generate(outcome.tree.as_ref().expect("checked")).expect_err("it must be refused")
}

fn check(path: &Path) -> Outcome {
    let outcome = rtorb_idl::check(&[path.to_owned()], &Options::default());
    assert!(
        outcome.tree.is_some(),
        "{}: {}",
        path.display(),
        outcome.render(false)
    );
    outcome
}

/// The rendered diagnostics, without the path of the repository.
fn render(diagnostics: &[Diagnostic], outcome: &Outcome) -> String {
    let rendered: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.render(&outcome.sources, false))
        .collect();
    rendered
        .join("\n\n")
        .replace(env!("CARGO_MANIFEST_DIR"), "")
}

fn crate_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

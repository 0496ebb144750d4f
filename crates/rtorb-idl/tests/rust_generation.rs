//! The Rust back end: generated text, rejected constructs, and their list in `docs/reference/mapping.md`.

use std::path::{Path, PathBuf};

use rtorb_idl::rust::{NOT_GENERATED, generate};
use rtorb_idl::{Diagnostic, Options, Outcome};

#[test]
fn generates() {
    insta::glob!("rust/*.idl", |path| insta::assert_snapshot!(text_of(path)));
}

#[test]
fn generates_the_benchmark_interface() {
    insta::assert_snapshot!("cubit", text_of(&crate_file("idl/cubit.idl")));
}

#[test]
fn generation_is_deterministic() {
    let cubit = crate_file("idl/cubit.idl");
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
    let page = std::fs::read_to_string(crate_file("../../docs/reference/mapping.md"))
        .expect("the page is in the repository");
    let (_, list) = page
        .split_once("## What is not generated yet")
        .expect("the page has that section");
    let listed: Vec<&str> = list
        .lines()
        .filter_map(|line| line.strip_prefix("* `"))
        .filter_map(|line| line.split_once('`').map(|(construct, _)| construct))
        .collect();
    let (others, ours): (Vec<&str>, Vec<&str>) = listed
        .iter()
        .partition(|construct| **construct == "component");
    assert_eq!(
        others,
        ["component"],
        "what the checker calls neither a value nor an interface has one line"
    );
    assert_eq!(
        ours,
        NOT_GENERATED.map(|not_generated| not_generated.construct)
    );
}

#[test]
fn chosen_names_that_are_wrong_or_taken_are_rejected_with_their_places() {
    insta::glob!("rust/collisions/*.idl", |path| {
        let outcome = check(path);
        let diagnostics = diagnostics_of(&outcome);
        assert!(
            diagnostics
                .iter()
                .all(|one| one.location().is_some() && !one.help.is_empty())
        );
        insta::assert_snapshot!(render(&diagnostics, &outcome));
    });
}

#[test]
fn an_option_chooses_the_name_of_any_declaration() {
    let text = "module M { interface I { void op(); attribute long x; };\n\
        struct S { long field; }; enum E { one }; };";
    let choices = [
        "M::I::op=renamed",
        "::M::I::x=y",
        "M::S=Renamed",
        "M::S::field=renamed",
        "M::E::one=Two",
    ];
    let options = Options {
        rust_names: choices.map(str::to_owned).to_vec(),
        ..Options::default()
    };
    let outcome = rtorb_idl::check_text("names.idl", text, &options);
    let generated = generate(outcome.tree.as_ref().expect("checked")).expect("nothing is refused");
    for rust in [
        "pub fn renamed(",
        "pub fn set_y(",
        "pub struct Renamed {",
        "pub renamed: i32",
        "Two,",
    ] {
        assert!(generated.contains(rust), "no `{rust}` in {generated}");
    }
}

#[test]
fn an_option_that_names_nothing_is_an_error() {
    for choice in ["M::nothing=x", "M", ""] {
        let options = Options {
            rust_names: vec![choice.to_owned()],
            ..Options::default()
        };
        let outcome =
            rtorb_idl::check_text("names.idl", "module M { struct S { long a; }; };", &options);
        assert!(outcome.tree.is_none(), "`{choice}` was accepted");
        assert!(outcome.render(false).contains("applies to no declaration"));
    }
}

#[test]
fn structs_that_hold_others_twice_may_be_nested_deeply() {
    let levels: String = (1..60)
        .map(|level| format!("struct S{level} {{ S{} a, b; }};\n", level - 1))
        .collect();
    let text = format!("struct S0 {{ long a; }};\n{levels}");
    let outcome = rtorb_idl::check_text("deep.idl", &text, &Options::default());
    let generated =
        generate(outcome.tree.as_ref().expect("the text is right")).expect("nothing is refused");
    assert!(generated.contains("fixed_layout!(S9 {"));
    assert!(
        !generated.contains("fixed_layout!(S10 {"),
        "more than 512 members"
    );
    let longest = 60 * 1500;
    assert!(generated.len() < longest, "{} bytes", generated.len());
}

#[test]
fn an_inherited_operation_is_marshalled_once() {
    let interfaces: String = (0..50)
        .map(|level| {
            let base = if level == 0 {
                String::new()
            } else {
                format!(": I{}", level - 1)
            };
            format!("interface I{level} {base} {{ long op_{level}(in string given); }};\n")
        })
        .collect();
    let outcome = rtorb_idl::check_text("deep.idl", &interfaces, &Options::default());
    let generated =
        generate(outcome.tree.as_ref().expect("the text is right")).expect("nothing is refused");
    for level in [0, 25, 49] {
        let derived = 49 - level;
        let uses = generated.matches(&format!("fn op_{level}(")).count();
        assert_eq!(
            uses,
            3 + derived,
            "the reference and derived ones, the servant's trait, and that of `Arc`"
        );
    }
    let marshalled = generated.matches("encode_argument(1u8, given, w)").count();
    assert_eq!(marshalled, 50, "each operation once");
}

#[test]
fn a_declaration_yields_to_the_enum_of_all_valuetypes() {
    let uses = "interface I { void f(in ValueBase v); };";
    for (text, name) in [(uses, "ValueBase_"), ("", "ValueBase")] {
        let text = format!("struct value_base {{ long x; }}; {text}");
        let outcome = rtorb_idl::check_text("taken.idl", &text, &Options::default());
        let generated = generate(outcome.tree.as_ref().expect("checked")).expect("it has a form");
        assert!(
            generated.contains(&format!("pub struct {name} {{")),
            "{generated}"
        );
    }
}

#[test]
fn interfaces_with_the_most_bases_need_no_large_stack() {
    let line: String = (1..=62)
        .map(|number| {
            format!(
                "interface I{number} : I{} {{ void op{number}(); }};",
                number - 1
            )
        })
        .collect();
    let text = format!(
        "interface I0 {{ void op0(); }}; interface Other {{}}; {line} interface Meet : Other, I62 {{}};"
    );
    let outcome = rtorb_idl::check_text("line.idl", &text, &Options::default());
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let thread = thread.spawn(move || generate(outcome.tree.as_ref().expect("checked")));
    let generated = thread.expect("it starts").join().expect("no overflow");
    assert!(
        generated
            .expect("64 bases are allowed")
            .contains("struct Meet(")
    );
}

#[test]
fn types_may_contain_each_other_in_a_ring_of_128() {
    for (length, is_right) in [(128, true), (129, false)] {
        let members = (0..length).map(|number| {
            let next = (number + 1) % length;
            format!("valuetype V{number}; valuetype V{next}; valuetype V{number} {{ public V{next} next; }};\n")
        });
        let text: String = members.collect();
        let outcome = rtorb_idl::check_text("ring.idl", &text, &Options::default());
        let generated = generate(outcome.tree.as_ref().expect("the text is right"));
        assert_eq!(generated.is_ok(), is_right, "{length}");
    }
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

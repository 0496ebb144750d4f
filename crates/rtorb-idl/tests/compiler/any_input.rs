//! For any input, a run ends without a panic and returns a tree or an error.

use proptest::prelude::*;
use rtorb_idl::{Options, OtherCompiler, Outcome, check_text};

const RIGHT: [&str; 12] = [
    include_str!("../right/annotations.idl"),
    include_str!("../right/components.idl"),
    include_str!("../right/constants.idl"),
    include_str!("../right/corba_module.idl"),
    include_str!("../right/idl4.idl"),
    include_str!("../right/interfaces.idl"),
    include_str!("../right/names.idl"),
    include_str!("../right/recursion.idl"),
    include_str!("../right/repository_ids.idl"),
    include_str!("../right/structs.idl"),
    include_str!("../right/unions.idl"),
    include_str!("../right/valuetypes.idl"),
];

fn run(text: &str) -> Outcome {
    let shared = Options {
        shared_with: Some(OtherCompiler::Omniidl),
        ..Options::default()
    };
    check_text("input.idl", text, &shared).render(false);
    let outcome = check_text("input.idl", text, &Options::default());
    assert_eq!(
        outcome.tree.is_none(),
        outcome
            .diagnostics
            .iter()
            .any(rtorb_idl::Diagnostic::is_error)
    );
    outcome.render(false);
    outcome.reports();
    outcome
}

/// `text` with words removed, inserted, replaced or repeated. Each change has a kind, a position, a length and a source.
fn mutated(text: &str, changes: &[(u8, usize, usize, usize)], other: &str) -> String {
    let mut words: Vec<&str> = text
        .split_inclusive(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let others: Vec<&str> = other
        .split_inclusive(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for &(kind, at, length, from) in changes {
        let at = at % words.len().max(1);
        let length = (length % 5).min(words.len() - at.min(words.len()));
        match kind % 5 {
            0 => drop(words.drain(at..at + length)),
            1 => words.insert(at, others[from % others.len()]),
            2 if at < words.len() => words[at] = others[from % others.len()],
            3 => words
                .splice(
                    at..at,
                    SHARP.iter().copied().skip(from % SHARP.len()).take(1),
                )
                .for_each(drop),
            _ => {
                let copy: Vec<&str> = words[at..at + length].to_vec();
                words.splice(at..at, copy).for_each(drop);
            }
        }
        if words.is_empty() {
            break;
        }
    }
    words.concat()
}

/// Words that are difficult for parsers.
const SHARP: [&str; 24] = [
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    ";",
    "::",
    "\"",
    "'",
    "\n#if 1\n",
    "\n#else\n",
    "\n#endif\n",
    "/*",
    "*/",
    "\\\n",
    "@",
    "L\"",
    "\n#define f(x) f(x) x\nf(",
    "\u{0}",
    "\u{20ac}",
    "1e999",
    "0xffffffffffffffffff",
    "\n#include \"input.idl\"\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        run(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_words(words in proptest::collection::vec(0usize..40, 0..120)) {
        let words: Vec<&str> = words.iter().map(|&word| WORDS[word]).collect();
        run(&words.join(" "));
    }

    #[test]
    fn right_files_with_changes(
        file in 0usize..RIGHT.len(),
        other in 0usize..RIGHT.len(),
        changes in proptest::collection::vec((any::<u8>(), any::<usize>(), any::<usize>(), any::<usize>()), 1..8),
    ) {
        run(&mutated(RIGHT[file], &changes, RIGHT[other]));
    }

    #[test]
    fn right_files_cut_off(file in 0usize..RIGHT.len(), at in any::<proptest::sample::Index>()) {
        let ends: Vec<usize> = RIGHT[file].char_indices().map(|(at, _)| at).collect();
        run(&RIGHT[file][..ends[at.index(ends.len())]]);
    }
}

const WORDS: [&str; 40] = [
    "module",
    "interface",
    "struct",
    "union",
    "switch",
    "case",
    "default",
    "enum",
    "typedef",
    "const",
    "sequence",
    "string",
    "long",
    "unsigned",
    "fixed",
    "valuetype",
    "abstract",
    "local",
    "A",
    "B",
    "a",
    "b",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    ";",
    ":",
    "::",
    ",",
    "=",
    "1",
    "\"x\"",
    "'c'",
    "in",
    "\n#define A B\n",
];

#[test]
fn deeply_nested_declarations_are_an_error() {
    deep("module M {", "", "};");
    deep("struct S { sequence<", "long", "> x; };");
    deep("typedef sequence<", "long", "> T;");
    deep("interface I { struct S {", "", "}; };");
    deep("union U switch (enum E { ", "", "}) {");
}

#[test]
fn deeply_nested_expressions_are_an_error() {
    deep("const long X = (", "1", ");");
    deep("const long X = -", "1", ";");
    deep("const long X = 1 + (2 * ", "1", ");");
}

#[test]
fn deeply_nested_directives_and_types_are_an_error() {
    deep("\n#if 1\n", "", "\n#endif\n");
    deep("\n#if (((1\n", "", "\n#endif\n");
    deep("@a(", "", ")");
    deep("x[", "", "]");
    deep("map<long, ", "long", ">");
}

/// Nests a text in itself 5,000 times, which no stack of a thread holds.
fn deep(open: &str, middle: &str, close: &str) {
    let text = open.repeat(5_000) + middle + &close.repeat(5_000);
    assert!(run(&text).tree.is_none(), "{open}");
}

#[test]
fn long_inputs_are_checked_in_time() {
    let started = std::time::Instant::now();
    let chain = |line: fn(usize) -> String| (1..3_000).map(line).collect::<String>();
    run(&format!("const long X = 1{};", " + 1".repeat(100_000)));
    run(&format!(
        "interface I0 {{}};{}",
        chain(|n| format!("interface I{n} : I{} {{}};\n", n - 1))
    ));
    run(&format!(
        "struct S0 {{ long x; }};{}",
        chain(|n| format!("struct S{n} {{ S{} x; }};\n", n - 1))
    ));
    run(&format!(
        "typedef long T0;{}",
        chain(|n| format!("typedef T{} T{n};\n", n - 1))
    ));
    run(&format!(
        "typedef long T0;{}",
        chain(|n| format!("typedef T{} T{n}[2];\n", n - 1))
    ));
    run(&format!("enum E {{ e0{} }};", chain(|n| format!(", e{n}"))));
    run(&format!(
        "const long C0 = 0;{}",
        chain(|n| format!("const long C{n} = C{} + 1;\n", n - 1))
    ));
    let diamonds = "interface A0 {}; interface B0 {};".to_owned()
        + &(1..60)
            .map(|n| {
                format!(
                    "interface A{n} : A{0}, B{0} {{}}; interface B{n} : A{0}, B{0} {{}};",
                    n - 1
                )
            })
            .collect::<String>();
    assert!(run(&diamonds).tree.is_some());
    run(&"x".repeat(1_000_000));
    run(&"\"".repeat(100_000));
    run(&"undeclared a; ".repeat(10_000));
    run(&"#define A A A\nA ".repeat(1_000));
    assert!(
        started.elapsed().as_secs() < 300,
        "took {:?}",
        started.elapsed()
    );
}

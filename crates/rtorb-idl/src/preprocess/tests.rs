//! Tests of the preprocessor. The files in `tests/` test its messages.

use super::*;

fn run(text: &str) -> (String, Vec<String>) {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let output = preprocess_file(
        SourceFile::new("t.idl", text).main(),
        &Options::default(),
        &mut sources,
        &mut diagnostics,
    );
    let tokens: Vec<String> = output.tokens.iter().map(Token::spelling).collect();
    let messages = diagnostics
        .into_sorted()
        .into_iter()
        .map(|diagnostic| diagnostic.message)
        .collect();
    (tokens.join(" ").trim().to_owned(), messages)
}

fn expands(text: &str, expected: &str) {
    let (output, messages) = run(text);
    assert_eq!(
        (output.as_str(), messages),
        (expected, Vec::new()),
        "{text}"
    );
}

#[test]
fn macros_expand_as_in_c() {
    expands("#define A 1 + B\n#define B 2\nA;", "1 + 2 ;");
    expands(
        "#define f(x, y) x y\nf(a, (b, c)) f f(\n1,\n2)",
        "a ( b , c ) f 1 2",
    );
    expands("#define f(x) #x x##_t\nf(a  b)", "\"a b\" a b_t");
    expands("#define A B\n#define B A\nA B", "A B");
    expands("#define f(x) g(x)\n#define g(x) f(x) h\nf(1)", "f ( 1 ) h");
    expands(
        "#define E\n#define cat(a, b) a##b\ncat(x, 1) cat(, y) E cat(z,)",
        "x1 y z",
    );
    expands(
        "#define v(a, ...) a __VA_ARGS__\nv(1, 2, 3) v(4)",
        "1 2 , 3 4",
    );
    expands("#define A 1\n#undef A\nA __LINE__", "A 3");
    expands("#define f() x\n#define g f\ng() f ()", "x x");
}

#[test]
fn conditions_choose_one_group() {
    expands(
        "#if 0\na don't\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif\ne",
        "b e",
    );
    expands("#ifdef X\na\n#else\nb\n#endif", "b");
    expands(
        "#define X\n#ifndef X\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif",
        "c",
    );
    expands(
        "#if defined(X) || !defined Y && (1 + 2 * 3 == 7)\na\n#endif",
        "a",
    );
    expands(
        "#define V 3\n#if V >= 3 && (V << 2) == 12 && 'a' == 97 && ~0 == -1 && (V ? 1 : 0)\na\n#endif",
        "a",
    );
    expands("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif", "c");
    for unused in [
        "defined(N) && 100 / N > 3",
        "defined(N) && (1 / 0 || 1 % 0)",
        "!1 || 0 && 1 / 0 || 1 || 1 / 0",
        "1 ? 1 : 1 / 0",
        "0 ? 1 / 0 : 1",
        "0 ? 1 ? 1 / 0 : 2 % 0 : 1",
    ] {
        let chosen = if unused.starts_with("defined") {
            "b"
        } else {
            "a"
        };
        let text = format!("#if {unused}\na\n#else\nb\n#endif");
        expands(&text, chosen);
    }
    expands("#if 1\na\n#else\n\"unterminated\n#bad\n#endif\nb", "a b");
}

#[test]
fn wrong_directives_are_reported_and_parsing_continues() {
    for (text, message) in [
        (
            "#if 1 +\n#endif\na",
            "this condition is not a valid expression",
        ),
        ("#if 1 / 0\n#endif\na", "this condition has no value"),
        ("#if 1 && 1 / 0\n#endif\na", "this condition has no value"),
        (
            "#if (0 && 1 / 0) || 1 / 0\n#endif\na",
            "this condition has no value",
        ),
        (
            "#if 1 ? 1 / 0 : 2\n#endif\na",
            "this condition has no value",
        ),
        (
            "#if 0 && 1 +\n#endif\na",
            "this condition is not a valid expression",
        ),
        ("#endif\na", "`#endif` without `#if`"),
        ("#if 1\na", "`#if` has no `#endif`"),
        ("#if 1\n#else\n#else\n#endif\na", "`#else` after `#else`"),
        ("#frob\na", "unknown preprocessor directive `#frob`"),
        ("#define 3\na", "this cannot be the name of a macro"),
        ("#define\na", "`#define` needs the name of a macro"),
        ("#undef\na", "`#undef` needs the name of a macro"),
        ("#ifdef\n#endif\na", "`#ifdef` needs the name of a macro"),
        ("#define f(x\na", "the parameters of macro `f` are wrong"),
        (
            "#define f(x) x\na f(1, 2)",
            "macro `f` takes 1 arguments, not 2",
        ),
        (
            "#define f(x) x\na f(1",
            "the arguments of macro `f` have no end",
        ),
        ("#error don't\na", "#error: don't"),
        ("#include\na", "`#include` needs the name of a file"),
        ("#include <none.idl>\na", "cannot find the file `none.idl`"),
        ("#pragma prefix omg\na", "this pragma is incomplete"),
        ("#line x\na", "this line directive has no number"),
    ] {
        assert_eq!(
            run(text),
            ("a".to_owned(), vec![message.to_owned()]),
            "{text}"
        );
    }
}

#[test]
fn a_comment_made_by_a_macro_is_no_token_and_hides_nothing() {
    for (joined, made) in [("/##/", "//"), ("/##*", "/*")] {
        let text = format!("#define COMMENT {joined}\nCOMMENT x\nstruct Lost {{ long a; }};");
        let (output, messages) = run(&text);
        let message = format!("`##` makes `{made}`, which is not one token");
        assert_eq!(messages, [message]);
        assert!(output.ends_with("x struct Lost { long a ; } ;"), "{output}");
    }
}

#[test]
fn exponential_macros_are_stopped() {
    let mut text = String::from("#define A0 x x x x x x x x x x\n");
    for level in 1..12 {
        let before = format!("A{} ", level - 1).repeat(10);
        text.push_str(&format!("#define A{level} {before}\n"));
    }
    let (_, messages) = run(&format!("{text}A11"));
    assert_eq!(messages, ["macros expand to too many tokens"]);
}

#[test]
fn macros_that_double_a_token_are_stopped() {
    let levels: String = (1..45)
        .map(|level| format!("#define A{level} D(A{})\n", level - 1))
        .collect();
    for (first, doubled, expected) in [
        ("q", "x##x", "`##` makes a token of more than 65536 bytes"),
        (r#""\"""#, "#x", "macros expand to too many tokens"),
    ] {
        let macros = format!("#define E(x) {doubled}\n#define D(x) E(x)\n#define A0 {first}\n");
        let (_, messages) = run(&format!("{macros}{levels}A44"));
        assert!(messages.iter().any(|it| it == expected), "{messages:?}");
    }
}

#[test]
fn built_in_files_are_found() {
    expands("#include <orb.idl>\n#include \"TypeCode.idl\"\n", "");
    let (output, messages) = run("#include <IOP.idl>\n#include \"IOP.idl\"\n");
    assert!(
        output.starts_with("module IOP {") && messages.is_empty(),
        "{messages:?}"
    );
    assert_eq!(output.matches("TaggedProfileSeq").count(), 1);
}

#[test]
fn each_file_counts_towards_the_limit() {
    let includes = "#include <orb.idl>\n".repeat(10_001);
    let (_, messages) = run(&includes);
    assert_eq!(messages, ["too many files are included"]);

    let folder = tempfile::tempdir().expect("a folder is made");
    let [first, second] = ["first.idl", "second.idl"].map(|name| folder.path().join(name));
    let most = "#include <orb.idl>\n".repeat(9_998);
    std::fs::write(&first, &most).expect("the file is written");
    std::fs::write(&second, "struct S { long a; };").expect("the file is written");
    let mut diagnostics = Diagnostics::default();
    preprocess(
        &[first, second],
        &Options::default(),
        &mut SourceMap::default(),
        &mut diagnostics,
    );
    let diagnostics = diagnostics.into_sorted();
    let messages: Vec<&str> = diagnostics.iter().map(|one| &*one.message).collect();
    assert_eq!(messages, ["too many files are included"]);
}

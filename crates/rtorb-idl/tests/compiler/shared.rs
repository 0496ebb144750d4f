//! Files that are shared with omniidl: the compiler warns of what omniidl refuses, and of nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use rtorb_idl::{Options, OtherCompiler, Outcome, check, check_text};

#[test]
fn warns_of_each_construct_that_omniidl_refuses() {
    let file = Path::new("tests/shared/refused.idl");
    let outcome = check_shared(file);
    assert!(outcome.tree.is_some(), "{}", outcome.render(false));
    let text = std::fs::read_to_string(file).expect("the file is in the repository");
    for (number, line) in (1..).zip(text.lines()) {
        let warned = refusals(&outcome).any(|warned| warned == number);
        let is_refused = line.ends_with("// refused");
        assert_eq!(
            warned,
            is_refused,
            "line {number}: {line}\n{}",
            outcome.render(false)
        );
    }
    let names: Vec<&str> = outcome
        .tree
        .iter()
        .flat_map(|tree| tree.ids().map(|id| tree.item(id).name.as_str()))
        .collect();
    assert!(
        names.contains(&"Visible") && !names.contains(&"Hidden"),
        "{names:?}"
    );
}

/// Each line that is marked, alone with the lines that it needs, is refused by omniidl; without those lines the file is accepted.
#[test]
fn omniidl_refuses_the_same() {
    let text =
        std::fs::read_to_string("tests/shared/refused.idl").expect("it is in the repository");
    let kept: String = text
        .lines()
        .filter(|line| !line.ends_with("// refused"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    // An instance, and a struct without its members, are refused with what they need.
    let kept = kept
        .replace("module Template<long> Longs;\n", "")
        .replace("struct Held {\n};\n", "");
    let Some(accepted) = omniidl_accepts(&kept) else {
        return;
    };
    assert!(accepted, "{kept}");
    for marked in text.lines().filter(|line| line.ends_with("// refused")) {
        let inside = marked.starts_with("  ");
        let alone = if !inside {
            format!("{kept}{marked}\n")
        } else if marked.contains("(") {
            format!("{kept}interface Alone {{\n{marked}\n}};\n")
        } else {
            format!("{kept}struct Alone {{\n{marked}\n}};\n")
        };
        assert_eq!(omniidl_accepts(&alone), Some(false), "{marked}");
    }
}

/// A name that a scope uses, and that it declares in another case: both compilers object, whichever stands first.
#[test]
fn names_in_another_case_are_found_in_both_orders() {
    let declarations = [
        "const long command = 1;",
        "struct command { long code; };",
        "enum Kind { command };",
        "interface command; interface command {};",
    ];
    let scopes = [
        ("module N {", "typedef Command Own;", "};"),
        ("module N {", "typedef Command Own; }; module N {", "};"),
        ("interface N {", "void f(in Command what);", "};"),
    ];
    for (scope, declared) in scopes
        .iter()
        .flat_map(|scope| declarations.map(|declared| (scope, declared)))
    {
        let (begin, used, end) = scope;
        if *begin == "interface N {" && declared.starts_with("interface") {
            continue;
        }
        let behind = format!("{begin} {used} {declared} {end}");
        let before = match used.split_once(" }; ") {
            Some((used, again)) => format!("{begin} {declared} }}; {again} {used} {end}"),
            None => format!("{begin} {declared} {used} {end}"),
        };
        for text in [behind, before] {
            let text = format!("struct Command {{ long code; }};\n{text}\n");
            let outcome = check_text("inline.idl", &text, &Options::default());
            let warnings: Vec<&str> = outcome
                .diagnostics
                .iter()
                .map(|one| one.message.as_str())
                .collect();
            assert_eq!(
                warnings,
                ["`command` differs in case only from `Command`, which is used here"],
                "{text}"
            );
            assert!(outcome.tree.is_some(), "{text}");
            assert_ne!(omniidl_accepts(&text), Some(true), "{text}");
        }
    }
}

/// Every file of the project without a warning for omniidl is accepted by omniidl.
#[test]
fn a_file_without_warnings_is_accepted_by_omniidl() {
    let (mut found, mut refused) = (0, String::new());
    for file in ["tests/right", "idl"].into_iter().flat_map(files) {
        let outcome = check_shared(&file);
        // Its preprocessor reads text that is skipped, and stops at an apostrophe.
        let has_apostrophe = file.ends_with("preprocessor.idl");
        if outcome.tree.is_none() || !outcome.diagnostics.is_empty() || has_apostrophe {
            continue;
        }
        let mut command = Command::new("omniidl");
        let Ok(output) = command
            .arg("-bdump")
            .arg("-I/usr/share/idl/omniORB")
            .arg(&file)
            .output()
        else {
            return;
        };
        found += 1;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            refused.push_str(&format!("{}: {said}\n", file.display()));
        }
    }
    assert!(refused.is_empty(), "{refused}");
    assert!(found >= 10, "{found}");
}

fn check_shared(file: &Path) -> Outcome {
    let options = Options {
        include_dirs: vec!["tests/right/include".into()],
        shared_with: Some(OtherCompiler::Omniidl),
        ..Options::default()
    };
    check(&[file.to_owned()], &options)
}

/// The lines with warnings that name omniidl.
fn refusals(outcome: &Outcome) -> impl Iterator<Item = u32> {
    let named = |one: &&rtorb_idl::Diagnostic| one.message.starts_with("omniidl refuses");
    let all = outcome.diagnostics.iter().filter(named);
    all.filter_map(|one| one.location().map(|location| location.line))
}

/// How often omniidl was asked: each text has a folder of its own, because tests run beside each other.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Nothing if omniidl is not installed.
fn omniidl_accepts(text: &str) -> Option<bool> {
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let name = format!("rtorb-idl-shared-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("the temporary directory can be written");
    let file = folder.join("shared.idl");
    std::fs::write(&file, text).expect("it can be written");
    let output = Command::new("omniidl").arg("-bdump").arg(&file).output();
    std::fs::remove_dir_all(folder).expect("it is ours");
    let required = std::env::var_os("RTORB_REQUIRE_PEERS").is_some_and(|value| value == "1");
    match output {
        Ok(output) => Some(output.status.success()),
        Err(error) => {
            assert!(!required, "omniidl: {error}: apt-get install omniidl");
            eprintln!("skipped: omniidl: {error}");
            None
        }
    }
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of the project");
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "idl"));
    files.sort();
    files
}

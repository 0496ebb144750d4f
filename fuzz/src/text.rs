//! Targets that parse text: IDL, JSON, names, the files of an analysis, and the lines of the laboratory's agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use rtorb_dynamic::json::{from_json, parse, to_json};
use rtorb_dynamic::types::Types;
use rtorb_idl::{Options, OtherCompiler};
use rtorb_lab::processes::agent::protocol::{AgentQuestion, Greeting, welcome};
use rtorb_results::profile::Profile;
use rtorb_sched::model::{CheckOptions, Platform, System, check};
use rtorb_services::naming::client::{Line, Name, format_name, parse_name};

/// Checks IDL, renders what is wrong with it, and generates Rust from what is right.
pub(crate) fn idl(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let outcome = rtorb_idl::check_text("input.idl", text, &Options::default());
    outcome.render(false);
    let shared = Options {
        shared_with: Some(OtherCompiler::Omniidl),
        ..Options::default()
    };
    rtorb_idl::check_text("input.idl", text, &shared).render(false);
    if let Some(tree) = outcome.tree {
        // The back end refuses some correct IDL, with an error.
        let _ = rtorb_idl::rust::generate(&tree);
    }
}

/// Converts JSON to a value of the type that the first byte chooses, and back.
pub(crate) fn json(input: &[u8]) {
    static TYPES: LazyLock<Types> = LazyLock::new(|| {
        let mut types = Types::standard();
        types
            .add_text("echo.idl", include_str!("../../tests/idl/echo.idl"))
            .expect("the IDL of the tests is right");
        types
    });
    let Some((chosen, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(text) else {
        return;
    };
    let Ok(json) = parse::<serde_json::Value>(text) else {
        return;
    };
    let name = JSON_TYPES[usize::from(*chosen) % JSON_TYPES.len()];
    let type_code = TYPES.parse(name).expect("a type of the IDL");
    let Ok(value) = from_json(&TYPES, &json, &type_code) else {
        return;
    };
    let written = to_json(&TYPES, &value, &type_code).expect("what was read can be written");
    let again = from_json(&TYPES, &written, &type_code).expect("what was written can be read");
    // Not by `==`: a NaN is not equal to itself.
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
}

/// Types of JSON values: plain ones, and those of `tests/idl/echo.idl`.
const JSON_TYPES: [&str; 12] = [
    "any",
    "octet",
    "double",
    "wstring",
    "Object",
    "sequence<octet>",
    "Echo::Rigid",
    "Echo::Grown",
    "Echo::Node",
    "Echo::ByEnum",
    "Echo::ByLong",
    "CosNaming::BindingList",
];

/// Parses lines of a file of names.
pub(crate) fn names(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    for line in text.lines() {
        if let Ok(Some(line)) = Line::parse(line) {
            check_name(&line.name);
        }
        if let Ok(name) = parse_name(line) {
            check_name(&name);
        }
    }
}

fn check_name(name: &Name) {
    assert_eq!(parse_name(&format_name(name)).as_ref(), Ok(name));
}

/// Parses the file of a system, and checks the system.
pub(crate) fn system(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let no_interfaces = |_: &[std::path::PathBuf]| Ok(BTreeMap::new());
    if let Ok(system) = System::parse_all(text, Path::new(""), &no_interfaces) {
        let platforms: Vec<Platform> = system.nodes.iter().map(|_| Platform::ideal()).collect();
        // Sensitivity repeats the analysis many times.
        let options = CheckOptions {
            sensitivity: false,
            ..CheckOptions::default()
        };
        let _ = check(&system, &platforms, &options);
    }
}

/// Parses the profile of a platform, as results and as an analysis read it.
pub(crate) fn profile(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let _ = serde_json::from_str::<Profile>(text);
    if let Ok(platform) = Platform::parse(text) {
        for amount in [0, 1, 100_000] {
            let _ = platform.context_switch(amount);
            let _ = platform.call(amount as u32);
            let _ = platform.send(amount as u32);
            let _ = platform.event(amount, amount as u32);
        }
        let _ = platform.assumptions();
    }
}

/// Parses a line of the laboratory's agent and of its client.
pub(crate) fn agent(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let _ = welcome(text);
    let _ = text.parse::<Greeting>();
    if let Ok(question) = serde_json::from_str::<AgentQuestion>(text) {
        let line = serde_json::to_string(&question).expect("it has a form in JSON");
        assert_eq!(serde_json::from_str(&line).ok(), Some(question));
    }
}

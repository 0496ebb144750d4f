//! The schema for editors and the reader know the same fields, and accept the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use rtorb_sched::model::System;
use rtorb_sched::text_file::Mistake;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Value {
    let path = root().join("docs/reference/system.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema is there");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn validator() -> Validator {
    let schema = schema();
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::draft202012::new(&schema).expect("the schema can be used")
}

fn json(toml: &str) -> Value {
    toml::from_str(toml).expect("it is TOML")
}

const GOOD: &str = include_str!("system_files/good.toml");

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let validator = validator();
    let mut files = vec![("good.toml".to_owned(), GOOD.to_owned())];
    for entry in std::fs::read_dir(root().join("examples/model")).expect("the examples are there") {
        let path = entry.expect("an example").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text = std::fs::read_to_string(&path).expect("an example can be read");
            let first = text.lines().next();
            assert_eq!(
                first,
                Some("#:schema ../../docs/reference/system.schema.json"),
                "{path:?}"
            );
            files.push((path.display().to_string(), text));
        }
    }
    assert!(files.len() >= 5, "{}", files.len());
    for (name, text) in files {
        let file = json(&text);
        let wrong: Vec<String> = validator
            .iter_errors(&file)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = validator();
    for (right, wrong) in [
        ("deadline = \"40ms\"", "dedline = \"40ms\""),
        ("period = \"50ms\"", "period = \"50\""),
        ("period = \"50ms\"", "period = 50"),
        (
            "minimum_gap = \"1s\"",
            "minimum_gap = \"1s\"\nperiod = \"1s\"",
        ),
        ("least = \"1ms\", most", "most"),
        ("way = \"one-way\"", "way = \"oneway\""),
        ("way = \"one-way\"", "way = \"one-way\", count = 2"),
        (
            "way = \"one-way\"",
            "way = \"one-way\", lingering = \"50us\"",
        ),
        (
            "way = \"one-way\"",
            "way = \"one-way\", channel = \"telemetry\"",
        ),
        ("channel = \"telemetry\", ", ""),
        ("payload = 128", "payload = 128, count = 2"),
        ("cpus = 2", "cpus = 0"),
        ("name = \"filter\"", "name = \"fil.ter\""),
        ("name = \"avionics\"", "name = \"../avionics\""),
        ("mutex = \"ceiling\"", "mutex = \"spin\""),
        ("strategy = \"dms\"", "strategy = \"edf\""),
        ("priority = 40", "priority = 40_000"),
        ("[\"arm\", \"mission\"]", "[\"arm\"]"),
        ("latency = \"150us\"\n", ""),
        ("[\"sensors.sample\", \"nav.show\"]", "[\"sensors.sample\"]"),
        ("{ up_to = \"1ms\", count = 90 }", "{ up_to = \"1ms\" }"),
        ("operation = \"Avionics::Nav::update\"\n", ""),
        (
            "communication = \"implicit\"",
            "communication = \"explicit\"",
        ),
        ("data_age_max = \"300ms\"", "data_age_max = 300"),
        ("\"sensors.sample\", \"filter.update\", \"log.alarm\"", ""),
    ] {
        assert_eq!(GOOD.matches(right).count(), 1, "{right}");
        let text = GOOD.replacen(right, wrong, 1);
        assert!(!validator.is_valid(&json(&text)), "{wrong}");
        let read = System::parse(&text, Path::new(""), &|_| Ok(BTreeMap::new()));
        assert!(read.is_err(), "{wrong}");
    }
}

/// Returns the fields that the reader knows in a table: its error about an unknown field lists them.
fn fields_of_reader(unknown: &str) -> BTreeSet<String> {
    let nothing = |_: &[PathBuf]| Ok(BTreeMap::new());
    let mistakes = System::parse_all(unknown, Path::new(""), &nothing).expect_err(unknown);
    let is_about_it = |mistake: &&Mistake| mistake.reason.starts_with("unknown field `zzz`");
    let about_it = mistakes.iter().find(is_about_it);
    about_it
        .unwrap_or_else(|| panic!("{unknown}: {mistakes:?}"))
        .reason
        .split('`')
        .skip(3)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn fields_of_schema(schema: &Value, pointers: &[&str]) -> BTreeSet<String> {
    let each = pointers.iter().flat_map(|pointer| {
        let table = schema.pointer(pointer).and_then(Value::as_object);
        table.expect(pointer).keys().cloned()
    });
    each.collect()
}

#[test]
fn the_schema_and_the_reader_know_the_same_fields() {
    let schema = schema();
    let tables = tables();
    for (pointers, unknown) in &tables {
        let (known, read) = (
            fields_of_schema(&schema, pointers),
            fields_of_reader(unknown),
        );
        assert!(!read.is_empty(), "{unknown}");
        assert_eq!(known, read, "{unknown}");
    }
    let objects = schema
        .to_string()
        .matches("\"additionalProperties\":false")
        .count();
    assert_eq!(
        objects,
        tables.len() + 1,
        "a table of the schema is not compared"
    );
}

/// Returns the places of all tables in the schema, each with a file that has an unknown field there.
fn tables() -> [(&'static [&'static str], String); 16] {
    let behaviour = "[[component]]\n[[component.behaviour]]\n";
    [
        (&["/properties"], "zzz = 1".to_owned()),
        (
            &["/properties/priorities/properties"],
            "[priorities]\nzzz = 1".to_owned(),
        ),
        (&["/$defs/node/properties"], "[[node]]\nzzz = 1".to_owned()),
        (&["/$defs/link/properties"], "[[link]]\nzzz = 1".to_owned()),
        (
            &["/$defs/channel/properties"],
            "[[channel]]\nzzz = 1".to_owned(),
        ),
        (
            &["/$defs/component/properties"],
            "[[component]]\nzzz = 1".to_owned(),
        ),
        (
            &["/$defs/resource/properties"],
            "[[component]]\n[[component.resource]]\nzzz = 1".to_owned(),
        ),
        (
            &["/$defs/behaviour/properties"],
            format!("{behaviour}zzz = 1"),
        ),
        (
            &["/$defs/burst/properties"],
            format!("{behaviour}burst = {{ zzz = 1 }}"),
        ),
        (
            &["/$defs/enforcement/properties"],
            format!("{behaviour}enforcement = {{ zzz = 1 }}"),
        ),
        (
            &[
                "/$defs/execution/oneOf/1/properties",
                "/$defs/execution/oneOf/2/properties",
            ],
            format!("{behaviour}execution = {{ zzz = 1 }}"),
        ),
        (
            &["/$defs/bucket/properties"],
            format!("{behaviour}execution = {{ histogram = [{{ zzz = 1 }}] }}"),
        ),
        (
            &["/$defs/section/properties"],
            format!("{behaviour}sections = [{{ zzz = 1 }}]"),
        ),
        (
            &["/$defs/call/properties"],
            format!("{behaviour}calls = [{{ zzz = 1 }}]"),
        ),
        (
            &["/$defs/chain/properties"],
            "[[chain]]\nzzz = 1".to_owned(),
        ),
        (
            &["/$defs/causeEffectChain/properties"],
            "[[cause_effect_chain]]\nzzz = 1".to_owned(),
        ),
    ]
}

#[test]
fn every_field_is_described() {
    let schema = schema();
    let mut waiting = vec![&schema];
    let mut described = 0;
    while let Some(value) = waiting.pop() {
        let Some(object) = value.as_object() else {
            continue;
        };
        waiting.extend(object.values());
        waiting.extend(object.values().filter_map(Value::as_array).flatten());
        let fields = object.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            // A reference to a table is described at the table.
            let target = field.get("$ref").or_else(|| field.pointer("/items/$ref"));
            let target = target.and_then(Value::as_str).map_or(field, |target| {
                schema
                    .pointer(&target[1..])
                    .expect("a reference leads somewhere")
            });
            let condition = field.get("const").is_some();
            let said = [field, target]
                .iter()
                .any(|one| one.get("description").is_some());
            assert!(said || condition, "{name}");
            described += 1;
        }
    }
    assert!(described > 40, "{described}");
}

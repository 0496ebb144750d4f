//! The message for a wrong argument has its place, the expected type and an example.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use rtorb_dynamic::Types;

/// Splits a line at the spaces outside of strings, arrays and objects.
fn arguments(line: &str) -> Vec<&str> {
    let (mut depth, mut is_text, mut start) = (0, false, 0);
    let mut found = Vec::new();
    for (at, character) in line.char_indices() {
        match character {
            '"' => is_text = !is_text,
            '[' | '{' if !is_text => depth += 1,
            ']' | '}' if !is_text => depth -= 1,
            ' ' if depth == 0 && !is_text => {
                found.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&line[start..]);
    found
}

#[test]
fn a_missing_result_is_not_called_null() {
    let mut types = Types::default();
    types
        .add_text("plant.idl", include_str!("wrong_json/plant.idl"))
        .unwrap();
    let crane = types.interface("Plant::Crane").unwrap();
    let measure = crane.operation("measure").unwrap();
    for (json, text) in [
        (
            r#"{"return": 1, "height": 2}"#,
            "the member `text` is missing, but string is expected, such as \"text\"",
        ),
        (
            r#"{"height": 2, "text": ""}"#,
            "the member `return` is missing, but long is expected, such as 1",
        ),
        (
            r#"{"return": null, "height": 2, "text": ""}"#,
            "return: it is null, but long is expected, such as 1",
        ),
    ] {
        let json = serde_json::from_str(json).unwrap();
        let read = measure.results_from_json(&types, &json);
        assert_eq!(read.unwrap_err().to_string(), text);
    }
}

#[test]
fn wrong_arguments_are_explained() {
    let mut types = Types::default();
    types
        .add_text("plant.idl", include_str!("wrong_json/plant.idl"))
        .unwrap();
    let crane = types.interface("Plant::Crane").unwrap();
    let told = include_str!("wrong_json/calls.txt").lines().map(|line| {
        let words = arguments(line);
        let operation = crane.operation(words[0]).unwrap();
        let read = operation.inputs_from_text(&types, &words[1..]);
        let error = read.expect_err(line);
        format!("{line}\n    {error}\n")
    });
    insta::assert_snapshot!(told.collect::<String>());
}

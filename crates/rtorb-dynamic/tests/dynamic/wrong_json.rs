//! The message for a wrong argument has its place, the expected type and an example.

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

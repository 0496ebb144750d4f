//! Conditions on arguments: JSON in which members of structs may be left out.

use rtorb::type_code::{Kind, Scope, Shape, TypeCode};
use serde_json::{Map, Value as Json, json};

use crate::json::{JsonError, WriteError, from_json, may_be_null, optional_content, to_json};
use crate::types::Types;

/// Checks a condition on a value of `type_code`, and returns it in the form that the JSON of such values has.
pub(super) fn checked(types: &Types, json: &Json, type_code: &TypeCode) -> Result<Json, JsonError> {
    match (type_code.unaliased().shape(), json) {
        (Shape::Struct(made), Json::Object(parts)) => {
            let mut object = Map::new();
            for (name, part) in parts {
                let member = made.members.iter().find(|it| *it.name == **name);
                let member = member.ok_or_else(|| {
                    JsonError::new(
                        &format!("there is no member `{name}`"),
                        &types.text(type_code),
                    )
                })?;
                let whole = Scope::new(type_code.unaliased());
                let part = match optional_content(types, &whole, name, &member.type_code) {
                    Some(content) => optional(types, part, content),
                    None => checked(types, part, &member.type_code),
                };
                let part = part.map_err(|error| error.within(format!(".{name}")))?;
                object.insert(name.clone(), part);
            }
            Ok(Json::Object(object))
        }
        (Shape::Sequence(made) | Shape::Array(made), Json::Array(parts))
            if made.element.unaliased().kind() != Kind::Octet =>
        {
            let part = |(place, part)| {
                let part = checked(types, part, &made.element);
                part.map_err(|error| error.within(format!("[{place}]")))
            };
            parts.iter().enumerate().map(part).collect()
        }
        (Shape::Recursive(id), _) => match types.by_id(id) {
            Some(whole) if !matches!(whole.shape(), Shape::Recursive(_)) => {
                checked(types, json, whole)
            }
            _ => complete(types, json, type_code),
        },
        _ => complete(types, json, type_code),
    }
}

/// Checks a condition on an optional member with values of type `content`.
fn optional(types: &Types, json: &Json, content: &TypeCode) -> Result<Json, JsonError> {
    if json.is_null() {
        return Ok(Json::Null);
    }
    if !may_be_null(content) {
        return checked(types, json, content);
    }
    let value = json.as_object().filter(|parts| parts.len() == 1);
    let value = value.and_then(|parts| parts.get("value"));
    let value = value.ok_or_else(|| {
        let expected = format!(
            "null or an object with a `value` of type {}",
            types.text(content)
        );
        JsonError::new("it has another form", &expected)
    })?;
    let value = checked(types, value, content).map_err(|error| error.within(".value"))?;
    Ok(json!({ "value": value }))
}

/// Checks the JSON of a complete value.
fn complete(types: &Types, json: &Json, type_code: &TypeCode) -> Result<Json, JsonError> {
    let value = from_json(types, json, type_code)?;
    let wrong = |error: WriteError| JsonError::new(&error.to_string(), &types.text(type_code));
    to_json(types, &value, type_code).map_err(wrong)
}

/// True if a value has all parts of a condition.
pub(super) fn holds(condition: &Json, value: &Json) -> bool {
    match (condition, value) {
        (Json::Object(parts), Json::Object(values)) => parts
            .iter()
            .all(|(name, part)| values.get(name).is_some_and(|value| holds(part, value))),
        (Json::Array(parts), Json::Array(values)) => {
            parts.len() == values.len()
                && parts
                    .iter()
                    .zip(values)
                    .all(|(part, value)| holds(part, value))
        }
        _ => condition == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types() -> Types {
        let idl = "struct Node; typedef sequence<Node> Nodes; typedef sequence<octet> Key; enum Hue { red, green };
            struct Node { long long number; Key key; Hue hue; Nodes kids; };";
        let mut types = Types::default();
        types.add_text("node.idl", idl).expect("the IDL is right");
        types
    }

    fn of_node(condition: &Json) -> Result<Json, JsonError> {
        let types = types();
        let node = types.by_id("IDL:Node:1.0").expect("it is declared");
        checked(&types, condition, node)
    }

    #[test]
    fn members_may_be_left_out_at_any_depth() {
        let node = json!({
            "number": "9007199254740993", "key": "hex:0102", "hue": "red",
            "kids": [{"number": 1, "key": "hex:", "hue": "green", "kids": []}],
        });
        for condition in [
            json!({}),
            json!({"number": 9_007_199_254_740_993_u64}),
            json!({"key": [1, 2]}),
            json!({"kids": [{"hue": "green"}]}),
            json!({"kids": [{"kids": []}], "hue": "red"}),
        ] {
            let checked = of_node(&condition).expect("it is right");
            assert!(holds(&checked, &node), "{condition}");
        }
        for condition in [
            json!({"number": 1}),
            json!({"kids": []}),
            json!({"kids": [{"hue": "red"}]}),
            json!({"kids": [{}, {}]}),
        ] {
            let checked = of_node(&condition).expect("it is right");
            assert!(!holds(&checked, &node), "{condition}");
        }
    }

    #[test]
    fn a_condition_on_an_optional_member_has_the_form_of_its_value() {
        let idl = "valuetype Label { public string text; }; struct Size { long width, height; };
            struct Part { @optional string name; @optional Size size; @optional Label label; @optional octet key; };";
        let mut types = Types::default();
        types.add_text("part.idl", idl).expect("the IDL is right");
        let part = types.by_id("IDL:Part:1.0").expect("it is declared");
        let full = json!({"name": "x", "size": {"width": 1, "height": 2}, "label": {"value": null}, "key": 7});
        let none = json!({"name": null, "size": null, "label": null, "key": null});
        for (condition, holds_for_full, holds_for_none) in [
            (json!({"name": "x"}), true, false),
            (json!({"name": "y"}), false, false),
            (json!({"name": null}), false, true),
            (json!({"size": {"height": 2}}), true, false),
            (json!({"label": {"value": null}}), true, false),
            (json!({"label": {"value": {"text": "x"}}}), false, false),
            (json!({"label": null}), false, true),
            (json!({"key": 7}), true, false),
        ] {
            let checked = checked(&types, &condition, part).expect("it is right");
            assert_eq!(holds(&checked, &full), holds_for_full, "{condition}");
            assert_eq!(holds(&checked, &none), holds_for_none, "{condition}");
        }
        for condition in [
            json!({"name": ["x"]}),
            json!({"label": {"text": "x"}}),
            json!({"label": {}}),
            json!({"label": {"value": null, "text": "x"}}),
        ] {
            let error = checked(&types, &condition, part).expect_err("it is wrong");
            assert!(error.to_string().starts_with(['n', 'l']), "{error}");
        }
    }

    #[test]
    fn a_wrong_condition_is_told_with_its_place() {
        let told = |condition: Json| of_node(&condition).expect_err("it is wrong").to_string();
        let text = told(json!({"kids": [{}, {"hue": "blue"}]}));
        assert!(text.starts_with("kids[1].hue: "), "{text}");
        assert!(text.contains("Hue"), "{text}");
        let text = told(json!({"kids": [{"name": 1}]}));
        assert!(text.contains("there is no member `name`"), "{text}");
    }
}

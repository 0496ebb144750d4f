//! Descriptions of interfaces and operations, for people and for programs.

use core::fmt::Write as _;

use rtorb::type_code::TypeCode;
use serde_json::{Value as Json, json};

use crate::interface::{Interface, Operation};
use crate::json::example;
use crate::types::Types;

impl Interface {
    /// The declarations of all attributes and operations.
    pub fn signatures(&self, types: &Types) -> Vec<String> {
        let attributes = self.attributes.iter().map(|it| it.signature(types));
        let operations = self.operations.iter().map(|it| it.signature(types));
        attributes.chain(operations).collect()
    }

    /// The interface as JSON: `interface`, `repository_id`, and `operations` with the forms of their JSON, attributes included.
    pub fn to_json(&self, types: &Types) -> Json {
        let getters = self.attributes.iter().map(|it| it.getter().to_json(types));
        let setters = self
            .attributes
            .iter()
            .filter_map(|it| Some(it.setter()?.to_json(types)));
        let operations = self.operations.iter().map(|it| it.to_json(types));
        json!({
            "interface": self.name,
            "repository_id": self.repository_id,
            "operations": getters.chain(setters).chain(operations).collect::<Vec<_>>(),
        })
    }
}

impl Operation {
    /// The declaration, and an example of the JSON of every argument, of the result, and of each exception.
    pub fn description(&self, types: &Types) -> String {
        let mut text = self.signature(types);
        let mut command = format!("rtorb call REF {}", self.name);
        let mut say = |what: String, type_code: &TypeCode| {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{what}: {}", types.text(type_code));
            let definition = format!("{:#}", type_code.unaliased());
            if definition.contains('{') {
                let _ = write!(text, "\n  {definition}");
            }
            let example = example(types, type_code).map(|it| it.to_string());
            if let Some(example) = &example {
                let _ = write!(text, "\n  example: {example}");
            }
            example
        };
        for (place, parameter) in self.inputs().enumerate() {
            let what = format!("argument {} ({})", place + 1, parameter.name);
            let example = say(what, &parameter.type_code).unwrap_or_else(|| "JSON".to_owned());
            let _ = write!(command, " '{}'", example.replace('\'', r"'\''"));
        }
        if !self.is_oneway {
            say("returns".to_owned(), &self.returns);
        }
        for parameter in self.outputs() {
            say(format!("returns {}", parameter.name), &parameter.type_code);
        }
        for exception in &self.raises {
            say("raises".to_owned(), exception);
        }
        let _ = write!(text, "\n{command}");
        text
    }

    /// The operation as JSON: `operation`, `signature`, `arguments` with name, type and example, and an example of the results.
    pub fn to_json(&self, types: &Types) -> Json {
        let arguments = self.inputs().map(|it| {
            json!({
                "name": it.name,
                "type": types.text(&it.type_code),
                "example": example(types, &it.type_code),
            })
        });
        json!({
            "operation": self.name,
            "signature": self.signature(types),
            "arguments": arguments.collect::<Vec<_>>(),
            "results": self.example_results(types),
            "exceptions": self.raises.iter().map(|it| example(types, it)).collect::<Vec<_>>(),
        })
    }
}

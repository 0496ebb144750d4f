//! Interfaces and their operations, as requests and servants need them.

use core::fmt;
use std::sync::Arc;

use rtorb::type_code::TypeCode;
pub use rtorb_idl::tree::Direction;

use crate::types::Types;

/// An interface with everything that it inherits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// Repository id.
    pub repository_id: String,
    /// Scoped name.
    pub name: String,
    /// The repository ids of all interfaces that it inherits from.
    pub ancestors: Vec<String>,
    /// Operations, inherited ones first.
    pub operations: Vec<Arc<Operation>>,
    /// Attributes, inherited ones first.
    pub attributes: Vec<Attribute>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name on the wire.
    pub name: String,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// True if there is no reply.
    pub is_oneway: bool,
    /// The type of the result; [`TypeCode::VOID`] for none.
    pub returns: TypeCode,
    /// The user exceptions that it may raise.
    pub raises: Vec<TypeCode>,
    /// True if it has a `context` clause. Requests send an empty context.
    pub has_context: bool,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its direction.
    pub direction: Direction,
    /// Its type.
    pub type_code: TypeCode,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_code: TypeCode,
    /// True if it cannot be set.
    pub is_readonly: bool,
    /// The user exceptions of reading it.
    pub get_raises: Vec<TypeCode>,
    /// The user exceptions of setting it.
    pub set_raises: Vec<TypeCode>,
}

impl Interface {
    /// The operation with that name. An attribute is `_get_NAME` and `_set_NAME`, or NAME to read it.
    pub fn operation(&self, name: &str) -> Option<Arc<Operation>> {
        if let Some(operation) = self.operations.iter().find(|it| it.name == name) {
            return Some(Arc::clone(operation));
        }
        let attribute = |name: &str| self.attributes.iter().find(|it| it.name == name);
        let setter = || attribute(name.strip_prefix("_set_")?)?.setter();
        let read = name.strip_prefix("_get_").unwrap_or(name);
        attribute(read)
            .map(Attribute::getter)
            .or_else(setter)
            .map(Arc::new)
    }

    /// The names of all operations and attributes, as a request names them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let operations = self.operations.iter().map(|it| &*it.name);
        operations.chain(self.attributes.iter().map(|it| &*it.name))
    }

    /// The known name that is most similar to `wrong`.
    pub fn suggestion(&self, wrong: &str) -> Option<&str> {
        rtorb_idl::suggest::closest(wrong, self.names())
    }

    /// True if an object of this interface can be used where the interface with that repository id is expected.
    pub fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id
            || repository_id == OBJECT
            || self.ancestors.iter().any(|id| id == repository_id)
    }
}

impl Operation {
    /// The parameters whose values the client sends.
    pub fn inputs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(|it| it.direction != Direction::Out)
    }

    /// The parameters whose values the servant sends.
    pub fn outputs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(|it| it.direction != Direction::In)
    }

    /// The declared exception with that repository id.
    pub fn exception(&self, repository_id: &str) -> Option<&TypeCode> {
        let is = |it: &&TypeCode| it.repository_id() == Some(repository_id);
        self.raises.iter().find(is)
    }

    /// The declaration in IDL, with scoped names.
    pub fn signature(&self, types: &Types) -> String {
        let parameters = self.parameters.iter().map(|it| {
            let type_text = types.text(&it.type_code);
            format!("{} {type_text} {}", direction(it.direction), it.name)
        });
        let parameters: Vec<_> = parameters.collect();
        format!(
            "{}{} {}({}){}",
            if self.is_oneway { "oneway " } else { "" },
            types.text(&self.returns),
            self.name,
            parameters.join(", "),
            clause("raises", &self.raises, types),
        )
    }
}

impl Attribute {
    /// The operation that reads the attribute.
    pub fn getter(&self) -> Operation {
        Operation {
            name: format!("_get_{}", self.name),
            parameters: Vec::new(),
            is_oneway: false,
            returns: self.type_code.clone(),
            raises: self.get_raises.clone(),
            has_context: false,
        }
    }

    /// The operation that sets the attribute; `None` if it is readonly.
    pub fn setter(&self) -> Option<Operation> {
        let value = Parameter {
            name: "value".to_owned(),
            direction: Direction::In,
            type_code: self.type_code.clone(),
        };
        (!self.is_readonly).then(|| Operation {
            name: format!("_set_{}", self.name),
            parameters: vec![value],
            is_oneway: false,
            returns: TypeCode::VOID,
            raises: self.set_raises.clone(),
            has_context: false,
        })
    }

    /// The declaration in IDL, with scoped names.
    pub fn signature(&self, types: &Types) -> String {
        format!(
            "{}attribute {} {}{}{}",
            if self.is_readonly { "readonly " } else { "" },
            types.text(&self.type_code),
            self.name,
            clause("getraises", &self.get_raises, types),
            clause("setraises", &self.set_raises, types),
        )
    }
}

/// A list of exceptions in a declaration; empty if there are none.
fn clause(word: &str, exceptions: &[TypeCode], types: &Types) -> String {
    let names: Vec<_> = exceptions.iter().map(|it| types.text(it)).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(" {word}({})", names.join(", "))
}

const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
        Direction::InOut => "inout",
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The repository id of the interface that every object has.
pub const OBJECT: &str = "IDL:omg.org/CORBA/Object:1.0";

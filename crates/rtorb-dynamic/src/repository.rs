//! Interfaces from the interface repository of an object's ORB (CORBA 3 §10).

use std::sync::Arc;

use rtorb::any::Value;
use rtorb::type_code::{Shape, TypeCode};
use rtorb::{ExceptionKind, ObjectRef, SystemException};
use rtorb_wire::{Decode, DecodeError};

use crate::interface::{Attribute, Direction, Interface, Operation, Parameter};
use crate::request::{Failure, Request};
use crate::types::Types;

/// Asks an object for its interface (`_interface`), and the repository for its description.
///
/// Adds the interface and the types in it to `types`.
///
/// # Errors
/// INTF_REPOS, if there is no repository; the exceptions of both calls; MARSHAL for a malformed description, such as one with names
/// that are no identifiers: callers make code of them.
pub fn interface_of(
    object: &ObjectRef,
    types: &mut Types,
) -> Result<Arc<Interface>, SystemException> {
    let definition = object.invoke("_interface", |_| Ok(()), Option::<ObjectRef>::decode)?;
    let no_repository = || SystemException::omg(ExceptionKind::IntfRepos, 1);
    let definition = definition.ok_or_else(no_repository)?;
    let repository = Arc::new(repository_types());
    let describe = repository
        .interface(INTERFACE_DEF)
        .and_then(|it| it.operation(DESCRIBE));
    let describe = describe.ok_or_else(no_repository)?;
    let request = Request::new(&definition, &describe, &repository, Vec::new())?;
    let results = request.invoke().map_err(|failure| match failure {
        Failure::System(exception) => exception,
        Failure::User { .. } | Failure::Undeclared { .. } => no_repository(),
    })?;
    let found = full_description(results.returns).ok_or(NO_DESCRIPTION)?;
    let id = found.repository_id.clone();
    type_codes(&found).for_each(|it| add_parts(types, it));
    types.add_interface(found);
    types
        .interface_by_id(&id)
        .cloned()
        .ok_or_else(no_repository)
}

/// The types in the declarations of an interface.
fn type_codes(interface: &Interface) -> impl Iterator<Item = &TypeCode> {
    let of_operations = interface.operations.iter().flat_map(|it| {
        let parameters = it.parameters.iter().map(|it| &it.type_code);
        parameters.chain(&it.raises).chain([&it.returns])
    });
    let of_attributes = interface.attributes.iter().map(|it| &it.type_code);
    of_operations.chain(of_attributes)
}

/// The IDL of the repository, as far as a client needs it.
pub fn repository_types() -> Types {
    let mut types = Types::default();
    let added = types.add_text("repository.idl", include_str!("repository.idl"));
    debug_assert!(added.is_ok(), "{added:?}");
    types
}

/// Adds the named types inside a type, except those that refer to a type around them: alone they are incomplete.
fn add_parts(types: &mut Types, type_code: &TypeCode) {
    let id = type_code.repository_id();
    if id.is_none_or(|id| types.by_id(id).is_none()) {
        add_complete(types, type_code, &mut Vec::new());
    }
}

/// Adds a type and the types inside it, and returns the level of the outermost of those around it to which it refers: the outermost of all has
/// level 1, and [`NO_LEVEL`] is none. `around` has their ids. Each type inside is visited once; a reader bounds their number and depth.
fn add_complete<'t>(
    types: &mut Types,
    type_code: &'t TypeCode,
    around: &mut Vec<Option<&'t str>>,
) -> usize {
    let id = type_code.repository_id();
    if let Shape::Recursive(_) = type_code.shape() {
        let nearest = around.iter().rposition(|it| *it == id);
        return nearest.map_or(0, |index| index + 1);
    }
    around.push(id);
    let inside = parts(type_code).into_iter();
    let reached = inside.fold(NO_LEVEL, |reached, (_, part)| {
        add_complete(types, part, around).min(reached)
    });
    let level = around.len();
    around.pop();
    if reached < level {
        return reached;
    }
    if let (Some(id), Some(name)) = (id, type_code.name())
        && types.by_id(id).is_none()
    {
        types.add_type(&scoped_name(id, name), type_code.clone());
    }
    NO_LEVEL
}

/// Larger than all levels.
const NO_LEVEL: usize = usize::MAX;

/// The types inside a type, with the names of those that have one.
pub(crate) fn parts(type_code: &TypeCode) -> Vec<(&str, &TypeCode)> {
    match type_code.shape() {
        Shape::Sequence(elements) | Shape::Array(elements) => vec![("", &elements.element)],
        Shape::Alias(alias) | Shape::ValueBox(alias) => vec![("", &alias.content)],
        Shape::Struct(made) | Shape::Except(made) => {
            let members = made.members.iter();
            members.map(|it| (&*it.name, &it.type_code)).collect()
        }
        Shape::Union(union) => {
            let members = union.members.iter().map(|it| (&*it.name, &it.type_code));
            std::iter::once(("", &union.discriminator))
                .chain(members)
                .collect()
        }
        Shape::Value(value) | Shape::Event(value) => {
            let members = value.members.iter().map(|it| (&*it.name, &it.type_code));
            std::iter::once(("", &value.base)).chain(members).collect()
        }
        _ => Vec::new(),
    }
}

/// Converts `IDL:example.org/A/B:1.0` to `A::B`: skips the parts up to the last one with a dot.
fn scoped_name(id: &str, name: &str) -> String {
    let path = id.strip_prefix("IDL:").and_then(|it| it.rsplit_once(':'));
    let Some((path, _)) = path else {
        return name.to_owned();
    };
    let parts = path.split('/').skip_while(|part| part.contains('.'));
    parts.collect::<Vec<_>>().join("::")
}

/// The members of a struct, in order.
fn members<const N: usize>(value: Value) -> Option<[Value; N]> {
    match value {
        Value::Members(values) => values.try_into().ok(),
        _ => None,
    }
}

fn elements(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Elements(values) => Some(values),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// A name, if it is an identifier.
fn name(value: Value) -> Option<String> {
    text(value).filter(|it| is_identifier(it))
}

fn type_code(value: Value) -> Option<TypeCode> {
    match value {
        Value::TypeCode(type_code) => Some(type_code),
        _ => None,
    }
}

/// True for letters, digits and `_` of ASCII that do not begin with a digit (CORBA 3 §7.2.3).
fn is_identifier(name: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    name.bytes().all(is_part) && name.bytes().next().is_some_and(|it| !it.is_ascii_digit())
}

/// True if the names of all members and enumerators inside a type are identifiers, or empty as in compact TypeCodes.
fn has_identifiers(type_code: &TypeCode) -> bool {
    let is_right = |name: &str| name.is_empty() || is_identifier(name);
    if let Shape::Enum(made) = type_code.shape() {
        return made.enumerators.iter().all(|it| is_right(it));
    }
    // A reader bounds the depth of a type.
    let mut parts = parts(type_code).into_iter();
    parts.all(|(name, part)| is_right(name) && has_identifiers(part))
}

fn full_description(value: Value) -> Option<Interface> {
    let [own_name, id, _, _, operations, attributes, bases, _] = members(value)?;
    let repository_id = text(id)?;
    let found = Interface {
        name: scoped_name(&repository_id, &name(own_name)?),
        repository_id,
        ancestors: elements(bases)?
            .into_iter()
            .map(text)
            .collect::<Option<_>>()?,
        operations: elements(operations)?
            .into_iter()
            .map(|it| operation(it).map(Arc::new))
            .collect::<Option<_>>()?,
        attributes: elements(attributes)?
            .into_iter()
            .map(attribute)
            .collect::<Option<_>>()?,
    };
    let nodes: u64 = type_codes(&found).map(|it| u64::from(it.nodes())).sum();
    let is_right = nodes <= NODES_MAX && type_codes(&found).all(has_identifiers);
    is_right.then_some(found)
}

fn operation(value: Value) -> Option<Operation> {
    let [
        own_name,
        _,
        _,
        _,
        result,
        mode,
        contexts,
        parameters,
        exceptions,
    ] = members(value)?;
    Some(Operation {
        name: name(own_name)?,
        parameters: elements(parameters)?
            .into_iter()
            .map(parameter)
            .collect::<Option<_>>()?,
        is_oneway: mode == Value::Enum(ONEWAY),
        returns: type_code(result)?,
        raises: elements(exceptions)?
            .into_iter()
            .map(exception)
            .collect::<Option<_>>()?,
        has_context: !elements(contexts)?.is_empty(),
    })
}

fn parameter(value: Value) -> Option<Parameter> {
    let [own_name, it, _, mode] = members(value)?;
    Some(Parameter {
        name: name(own_name)?,
        direction: match mode {
            Value::Enum(0) => Direction::In,
            Value::Enum(1) => Direction::Out,
            Value::Enum(2) => Direction::InOut,
            _ => return None,
        },
        type_code: type_code(it)?,
    })
}

fn exception(value: Value) -> Option<TypeCode> {
    let [_, _, _, _, it] = members(value)?;
    type_code(it)
}

fn attribute(value: Value) -> Option<Attribute> {
    let [own_name, _, _, _, it, mode] = members(value)?;
    Some(Attribute {
        name: name(own_name)?,
        type_code: type_code(it)?,
        is_readonly: mode == Value::Enum(READONLY),
        get_raises: Vec::new(),
        set_raises: Vec::new(),
    })
}

/// `OperationMode`: OP_NORMAL, OP_ONEWAY.
const ONEWAY: u32 = 1;
/// `AttributeMode`: ATTR_NORMAL, ATTR_READONLY.
const READONLY: u32 = 1;

const INTERFACE_DEF: &str = "Repository::InterfaceDef";
const DESCRIBE: &str = "describe_interface";

/// The most types in all types of a description, each counted as often as it occurs. Types of a few bytes can refer to each other so that each
/// of them has thousands.
const NODES_MAX: u64 = 1 << 24;

/// The exception for a malformed description.
const NO_DESCRIPTION: SystemException = SystemException::from_decode(DecodeError::UnknownValue);

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_wire::Writer;
    use rtorb_wire::any::State;

    fn string(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    /// The description of an interface with an operation, its parameter, and an attribute.
    fn description(operation: &str, parameter: &str, attribute: &str, given: &TypeCode) -> Value {
        let none = || Value::Elements(Vec::new());
        let of = |type_code: &TypeCode| Value::TypeCode(type_code.clone());
        let parameter = vec![string(parameter), of(given), Value::Nothing, Value::Enum(0)];
        let operation = vec![
            string(operation),
            string(""),
            string(""),
            string(""),
            of(&TypeCode::VOID),
            Value::Enum(0),
            none(),
            Value::Elements(vec![Value::Members(parameter)]),
            none(),
        ];
        let attribute = vec![
            string(attribute),
            string(""),
            string(""),
            string(""),
            of(&TypeCode::LONG),
            Value::Enum(0),
        ];
        Value::Members(vec![
            string("Motor"),
            string("IDL:Motor:1.0"),
            string(""),
            string(""),
            Value::Elements(vec![Value::Members(operation)]),
            Value::Elements(vec![Value::Members(attribute)]),
            none(),
            of(&TypeCode::VOID),
        ])
    }

    #[test]
    fn names_of_a_description_are_identifiers() {
        let long = TypeCode::LONG;
        assert!(full_description(description("turn", "_to2", "speed", &long)).is_some());
        for wrong in ["x():\n pass", "", "2x", "a b", "a=1", "größe", "a\0"] {
            for place in 0..3 {
                let mut names = ["turn", "degrees", "speed"];
                names[place] = wrong;
                let [operation, parameter, attribute] = names;
                let read = full_description(description(operation, parameter, attribute, &long));
                assert!(read.is_none(), "{wrong:?} in place {place}");
            }
        }
    }

    #[test]
    fn names_in_the_types_of_a_description_are_identifiers() {
        for (name, is_read) in [("x", true), ("x=print(1)", false), ("x: int\n", false)] {
            let enumeration = TypeCode::enumeration("IDL:E:1.0", "E", [name]);
            let made = TypeCode::structure("IDL:S:1.0", "S", [(name, TypeCode::LONG)]);
            let inside = TypeCode::sequence(made.clone(), 0);
            for type_code in [enumeration, made, inside] {
                let read = full_description(description("turn", "to", "speed", &type_code));
                assert_eq!(read.is_some(), is_read, "{name:?} in {type_code}");
            }
        }
    }

    #[test]
    fn a_description_has_a_bounded_number_of_types() {
        let twice = |levels| {
            (0..levels).fold(TypeCode::LONG, |inner, level| {
                let id = format!("IDL:S{level}:1.0");
                TypeCode::structure(&id, "S", [("a", inner.clone()), ("b", inner)])
            })
        };
        let read = |levels| full_description(description("turn", "to", "speed", &twice(levels)));
        assert!(read(10).is_some());
        assert!(read(24).is_none());
    }

    #[test]
    fn no_added_type_refers_to_a_type_around_it() {
        let value = |id: &str, member: TypeCode| {
            let state = [("next", member, true)];
            rtorb_wire::valuetype::type_code(id, "V", 0, TypeCode::NULL, state)
        };
        let (id_a, id_b) = ("IDL:A:1.0", "IDL:B:1.0");
        // valuetype A { public B next; }; valuetype B { public A next; };
        let a = value(id_a, value(id_b, TypeCode::recursive(id_a)));
        let b = value(id_b, value(id_a, TypeCode::recursive(id_b)));
        // A struct with A, and a struct in A.
        let inner = TypeCode::structure("IDL:Inner:1.0", "Inner", [("x", TypeCode::LONG)]);
        let members = [("a", a), ("inner", inner)];
        let outer = TypeCode::structure("IDL:Outer:1.0", "Outer", members);
        let mut types = Types::default();
        add_parts(&mut types, &outer);
        assert!(types.by_id(id_b).is_none());
        add_parts(&mut types, &b);
        for id in [id_a, id_b] {
            let type_code = types.by_id(id).expect("it is added");
            let state = State {
                repository_id: id.into(),
                members: vec![Value::Valuetype(None)],
            };
            let value = Value::Valuetype(Some(state.into()));
            let mut w = Writer::new(Vec::new(), 1 << 10);
            assert_eq!(value.encode(type_code, &mut w), Ok(()), "{id}");
        }
        assert!(types.by_id("IDL:Inner:1.0").is_some());
        assert!(types.by_id("IDL:Outer:1.0").is_some());
    }
}

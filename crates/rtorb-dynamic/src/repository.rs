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
/// INTF_REPOS, if there is no repository; the exceptions of both calls; MARSHAL for a malformed description.
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
    for operation in &found.operations {
        operation
            .parameters
            .iter()
            .for_each(|it| add_parts(types, &it.type_code));
        operation.raises.iter().for_each(|it| add_parts(types, it));
        add_parts(types, &operation.returns);
    }
    found
        .attributes
        .iter()
        .for_each(|it| add_parts(types, &it.type_code));
    types.add_interface(found);
    types
        .interface_by_id(&id)
        .cloned()
        .ok_or_else(no_repository)
}

/// The IDL of the repository, as far as a client needs it.
pub fn repository_types() -> Types {
    let mut types = Types::default();
    let added = types.add_text("repository.idl", include_str!("repository.idl"));
    debug_assert!(added.is_ok(), "{added:?}");
    types
}

/// Adds the named types inside a type.
fn add_parts(types: &mut Types, type_code: &TypeCode) {
    if let (Some(id), Some(name)) = (type_code.repository_id(), type_code.name()) {
        // Types of the repository nest at most as deep as a reader allows, and each is added once.
        if types.by_id(id).is_some() || !types.add_type(&scoped_name(id, name), type_code.clone()) {
            return;
        }
    }
    let mut add = |part: &TypeCode| add_parts(types, part);
    match type_code.shape() {
        Shape::Sequence(elements) | Shape::Array(elements) => add(&elements.element),
        Shape::Struct(made) | Shape::Except(made) => {
            made.members.iter().for_each(|it| add(&it.type_code));
        }
        Shape::Union(union) => {
            add(&union.discriminator);
            union.members.iter().for_each(|it| add(&it.type_code));
        }
        Shape::Alias(alias) | Shape::ValueBox(alias) => add(&alias.content),
        Shape::Value(value) | Shape::Event(value) => {
            add(&value.base);
            value.members.iter().for_each(|it| add(&it.type_code));
        }
        _ => {}
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

fn type_code(value: Value) -> Option<TypeCode> {
    match value {
        Value::TypeCode(type_code) => Some(type_code),
        _ => None,
    }
}

fn full_description(value: Value) -> Option<Interface> {
    let [name, id, _, _, operations, attributes, bases, _] = members(value)?;
    let repository_id = text(id)?;
    Some(Interface {
        name: scoped_name(&repository_id, &text(name)?),
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
    })
}

fn operation(value: Value) -> Option<Operation> {
    let [
        name,
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
        name: text(name)?,
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
    let [name, it, _, mode] = members(value)?;
    Some(Parameter {
        name: text(name)?,
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
    let [name, _, _, _, it, mode] = members(value)?;
    Some(Attribute {
        name: text(name)?,
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

/// The exception for a malformed description.
const NO_DESCRIPTION: SystemException = SystemException::from_decode(DecodeError::UnknownValue);

//! TypeCodes as text like IDL: `sequence<P, 4>`; the alternate form is the definition, `struct P { ... }`.

use super::shape::{Label, Shape, Union};
use super::{Kind, TypeCode};
use core::fmt;

impl fmt::Display for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return definition(self, f);
        }
        match self.shape() {
            Shape::Plain(kind) => f.write_str(kind.keyword()),
            Shape::String { bound: 0 } => f.write_str("string"),
            Shape::String { bound } => write!(f, "string<{bound}>"),
            Shape::WString { bound: 0 } => f.write_str("wstring"),
            Shape::WString { bound } => write!(f, "wstring<{bound}>"),
            Shape::Fixed { digits, scale } => write!(f, "fixed<{digits}, {scale}>"),
            Shape::Sequence(elements) if elements.count == 0 => {
                write!(f, "sequence<{}>", elements.element)
            }
            Shape::Sequence(elements) => {
                write!(f, "sequence<{}, {}>", elements.element, elements.count)
            }
            Shape::Array(_) => array(self, f),
            shape => f.write_str(match shape.named() {
                Some(named) => scoped_name(&named.id, &named.name),
                None => scoped_name(self.repository_id().unwrap_or(""), ""),
            }),
        }
    }
}

impl fmt::Debug for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

/// The name; if it is empty, the name in an id of the form `IDL:a/b/Name:1.0`; otherwise the id.
fn scoped_name<'t>(id: &'t str, name: &'t str) -> &'t str {
    if !name.is_empty() {
        return name;
    }
    let path = id
        .strip_prefix("IDL:")
        .and_then(|rest| rest.rsplit_once(':'));
    let path = path.map_or(id, |(path, _version)| path);
    match path.rsplit('/').next() {
        Some(last) if !last.is_empty() => last,
        _ => "?",
    }
}

fn array(type_code: &TypeCode, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut element = type_code;
    while let Shape::Array(elements) = element.shape() {
        element = &elements.element;
    }
    write!(f, "{element}")?;
    let mut next = type_code;
    while let Shape::Array(elements) = next.shape() {
        write!(f, "[{}]", elements.count)?;
        next = &elements.element;
    }
    Ok(())
}

fn definition(type_code: &TypeCode, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match type_code.shape() {
        Shape::Struct(aggregate) | Shape::Except(aggregate) => {
            let members = aggregate.members.iter();
            let members = members.map(|member| (&member.type_code, &*member.name));
            members_of(type_code, members, f)
        }
        Shape::Union(union) => {
            write!(f, "union {type_code} switch ({}) {{", union.discriminator)?;
            union_members(union, f)?;
            f.write_str(" }")
        }
        Shape::Enum(enumeration) => {
            write!(f, "enum {type_code} {{")?;
            for (index, name) in enumeration.enumerators.iter().enumerate() {
                let comma = if index == 0 { " " } else { ", " };
                write!(f, "{comma}{name}")?;
            }
            f.write_str(" }")
        }
        Shape::Alias(alias) => write!(f, "typedef {} {type_code}", alias.content),
        Shape::ValueBox(alias) => write!(f, "valuetype {type_code} {}", alias.content),
        Shape::Value(value) | Shape::Event(value) => {
            let members = value.members.iter();
            let members = members.map(|member| (&member.type_code, &*member.name));
            members_of(type_code, members, f)
        }
        Shape::Named(kind, _) => write!(f, "{} {type_code}", kind.keyword()),
        _ => write!(f, "{type_code}"),
    }
}

fn members_of<'t>(
    enclosing: &TypeCode,
    members: impl Iterator<Item = (&'t TypeCode, &'t str)>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "{} {enclosing} {{", enclosing.kind().keyword())?;
    for (type_code, name) in members {
        write!(f, " {type_code} {name};")?;
    }
    f.write_str(" }")
}

fn union_members(union: &Union, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, member) in (0..).zip(&union.members) {
        if Some(index) == union.default {
            f.write_str(" default:")?;
        } else {
            f.write_str(" case ")?;
            label(&union.discriminator, member.label, f)?;
            f.write_str(":")?;
        }
        write!(f, " {} {};", member.type_code, member.name)?;
    }
    Ok(())
}

fn label(discriminator: &TypeCode, label: Label, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let number = u32::try_from(label).ok();
    match discriminator.unaliased().shape() {
        Shape::Plain(Kind::Boolean) => f.write_str(if label == 0 { "FALSE" } else { "TRUE" }),
        Shape::Plain(Kind::Char | Kind::WChar) => match number.and_then(char::from_u32) {
            Some(character) => write!(f, "{character:?}"),
            None => write!(f, "{label}"),
        },
        Shape::Plain(Kind::ULongLong) => write!(f, "{}", label as u64),
        Shape::Enum(enumeration) => {
            match number.and_then(|index| enumeration.enumerators.get(index as usize)) {
                Some(name) => f.write_str(name),
                None => write!(f, "{label}"),
            }
        }
        _ => write!(f, "{label}"),
    }
}

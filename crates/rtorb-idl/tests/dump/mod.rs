//! A checked tree as compact text, for snapshots.

use std::fmt::Write;

use rtorb_idl::tree::{
    Annotation, AnnotationParameter, Attribute, Bitmask, Bitset, Direction, InterfaceFlavour, Item,
    ItemId, ItemKind, Member, Operation, StateMember, Tree, Type, Value, Valuetype,
};

/// One line for each declaration, with its contents indented below.
pub(crate) fn dump(tree: &Tree) -> String {
    let mut out = String::new();
    for &root in &tree.roots {
        item(tree, root, 0, &mut out);
    }
    out
}

fn item(tree: &Tree, id: ItemId, depth: usize, out: &mut String) {
    let item = tree.item(id);
    let pad = "  ".repeat(depth);
    for line in &item.documentation {
        let _ = writeln!(out, "{}", format!("{pad}/// {line}").trim_end());
    }
    let (what, rest) = headline(tree, &item.kind);
    let origin = if item.in_main_file { "" } else { " (included)" };
    let _ = writeln!(
        out,
        "{pad}{}{what} {}{rest}  [{}]{origin}",
        annotations(&item.annotations),
        item.name,
        item.repository_id
    );
    contents(tree, item, depth + 1, out);
}

fn headline(tree: &Tree, kind: &ItemKind) -> (String, String) {
    let names = |ids: &[ItemId]| {
        ids.iter()
            .map(|&id| scoped(tree, id))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let after = |mark: &str, ids: &[ItemId]| {
        if ids.is_empty() {
            String::new()
        } else {
            format!(" {mark} {}", names(ids))
        }
    };
    match kind {
        ItemKind::Module => ("module".into(), String::new()),
        ItemKind::Interface(interface) => {
            let what = match interface.flavour {
                InterfaceFlavour::Plain => "interface",
                InterfaceFlavour::Abstract => "abstract interface",
                InterfaceFlavour::Local => "local interface",
            };
            (what.into(), after(":", &interface.bases))
        }
        ItemKind::Struct { .. } => ("struct".into(), String::new()),
        ItemKind::Exception { .. } => ("exception".into(), String::new()),
        ItemKind::Union(union) => {
            let all = if union.covers_all { " covers all" } else { "" };
            let annotated = annotations(&union.discriminator_annotations);
            (
                "union".into(),
                format!(
                    " switch ({annotated}{}){all}",
                    ty(tree, &union.discriminator)
                ),
            )
        }
        ItemKind::Enum { .. } => ("enum".into(), String::new()),
        ItemKind::Bitmask(mask) => ("bitmask".into(), format!(": {}", ty(tree, &mask.holder))),
        ItemKind::Bitset(set) => (
            "bitset".into(),
            format!(": {} bits in {}", set.width, ty(tree, &set.holder)),
        ),
        ItemKind::Alias { ty: aliased } => ("typedef".into(), format!(" = {}", ty(tree, aliased))),
        ItemKind::Constant { ty: of, value: is } => (
            "const".into(),
            format!(": {} = {}", ty(tree, of), value(tree, is)),
        ),
        ItemKind::Native => ("native".into(), String::new()),
        ItemKind::ValueBox { ty: boxed } => ("valuebox".into(), format!(" of {}", ty(tree, boxed))),
        ItemKind::Valuetype(valuetype) => value_headline(valuetype, after),
        ItemKind::Undefined { what } => (format!("undefined {what}"), String::new()),
        ItemKind::Other { what } => (format!("other {what}"), String::new()),
    }
}

fn value_headline(
    valuetype: &Valuetype,
    after: impl Fn(&str, &[ItemId]) -> String,
) -> (String, String) {
    let mut what = String::new();
    for (holds, word) in [
        (valuetype.is_abstract, "abstract "),
        (valuetype.is_custom, "custom "),
    ] {
        what.push_str(if holds { word } else { "" });
    }
    what.push_str(if valuetype.is_event {
        "eventtype"
    } else {
        "valuetype"
    });
    let mark = if valuetype.is_truncatable {
        ": truncatable"
    } else {
        ":"
    };
    (
        what,
        after(mark, &valuetype.bases) + &after("supports", &valuetype.supports),
    )
}

fn contents(tree: &Tree, outer: &Item, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    for &inner in &outer.items {
        item(tree, inner, depth, out);
    }
    match &outer.kind {
        ItemKind::Struct { members } | ItemKind::Exception { members } => {
            members.iter().for_each(|m| member(tree, m, &pad, "", out));
        }
        ItemKind::Union(union) => cases(tree, union, &pad, out),
        ItemKind::Enum { enumerators } => {
            for enumerator in enumerators {
                comment(&enumerator.documentation, &pad, out);
                let _ = writeln!(
                    out,
                    "{pad}{}{}",
                    annotations(&enumerator.annotations),
                    enumerator.name
                );
            }
        }
        ItemKind::Bitmask(mask) => flags(mask, &pad, out),
        ItemKind::Bitset(set) => fields(tree, set, &pad, out),
        ItemKind::Interface(interface) => calls(
            tree,
            &interface.operations,
            &interface.attributes,
            &pad,
            out,
        ),
        ItemKind::Valuetype(valuetype) => {
            for StateMember {
                is_public,
                member: state,
            } in &valuetype.state
            {
                member(
                    tree,
                    state,
                    &pad,
                    if *is_public { "public " } else { "private " },
                    out,
                );
            }
            for factory in &valuetype.factories {
                let _ = writeln!(out, "{pad}factory {}", call(tree, factory));
            }
            calls(
                tree,
                &valuetype.operations,
                &valuetype.attributes,
                &pad,
                out,
            );
        }
        _ => {}
    }
}

fn cases(tree: &Tree, union: &rtorb_idl::tree::Union, pad: &str, out: &mut String) {
    for case in &union.cases {
        let mut labels: Vec<String> = case.labels.iter().map(|label| value(tree, label)).collect();
        labels.extend(case.is_default.then(|| "default".to_owned()));
        member(
            tree,
            &case.member,
            pad,
            &format!("{} => ", labels.join(" | ")),
            out,
        );
    }
}

fn flags(mask: &Bitmask, pad: &str, out: &mut String) {
    for flag in &mask.flags {
        comment(&flag.documentation, pad, out);
        let annotated = annotations(&flag.annotations);
        let _ = writeln!(out, "{pad}{annotated}{} = {}", flag.name, flag.position);
    }
}

fn fields(tree: &Tree, set: &Bitset, pad: &str, out: &mut String) {
    for field in &set.fields {
        comment(&field.documentation, pad, out);
        let (of, first) = (ty(tree, &field.ty), field.offset);
        let (annotated, last) = (annotations(&field.annotations), first + field.width - 1);
        let _ = writeln!(
            out,
            "{pad}{annotated}{}: {of} = {first} to {last}",
            field.name
        );
    }
}

fn comment(lines: &[String], pad: &str, out: &mut String) {
    for line in lines {
        let _ = writeln!(out, "{}", format!("{pad}/// {line}").trim_end());
    }
}

fn member(tree: &Tree, member: &Member, pad: &str, before: &str, out: &mut String) {
    comment(&member.documentation, pad, out);
    let _ = writeln!(
        out,
        "{pad}{}{before}{}{}: {}",
        annotations(&member.annotations),
        member.name,
        if member.is_optional { "?" } else { "" },
        ty(tree, &member.ty)
    );
}

fn calls(
    tree: &Tree,
    operations: &[Operation],
    attributes: &[Attribute],
    pad: &str,
    out: &mut String,
) {
    for attribute in attributes {
        comment(&attribute.documentation, pad, out);
        let readonly = if attribute.readonly { "readonly " } else { "" };
        let get = raised(tree, "get raises", &attribute.get_raises);
        let set = raised(tree, "set raises", &attribute.set_raises);
        let annotated = annotations(&attribute.annotations);
        let _ = writeln!(
            out,
            "{pad}{annotated}{readonly}attribute {}: {}{get}{set}",
            attribute.name,
            ty(tree, &attribute.ty)
        );
    }
    for operation in operations {
        comment(&operation.documentation, pad, out);
        let _ = writeln!(out, "{pad}{}", call(tree, operation));
    }
}

fn call(tree: &Tree, operation: &Operation) -> String {
    let parameter = |parameter: &rtorb_idl::tree::Parameter| {
        let direction = match parameter.direction {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::InOut => "inout",
        };
        format!(
            "{}{direction} {}: {}",
            annotations(&parameter.annotations),
            parameter.name,
            ty(tree, &parameter.ty)
        )
    };
    let parameters: Vec<String> = operation.parameters.iter().map(parameter).collect();
    let oneway = if operation.oneway { "oneway " } else { "" };
    let context = if operation.context.is_empty() {
        String::new()
    } else {
        format!(" context {:?}", operation.context)
    };
    format!(
        "{}{oneway}{}({}) -> {}{}{context}",
        annotations(&operation.annotations),
        operation.name,
        parameters.join(", "),
        ty(tree, &operation.returns),
        raised(tree, "raises", &operation.raises),
    )
}

fn raised(tree: &Tree, word: &str, ids: &[ItemId]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    format!(
        " {word} {}",
        ids.iter()
            .map(|&id| scoped(tree, id))
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn annotations(annotations: &[Annotation]) -> String {
    let one = |annotation: &Annotation| {
        let parameter = |AnnotationParameter { name, value }: &AnnotationParameter| {
            if name.is_empty() {
                value.clone()
            } else {
                format!("{name}={value}")
            }
        };
        let parameters: Vec<String> = annotation.parameters.iter().map(parameter).collect();
        let parameters = if parameters.is_empty() {
            String::new()
        } else {
            format!("({})", parameters.join(", "))
        };
        format!("@{}{parameters} ", annotation.name)
    };
    annotations.iter().map(one).collect()
}

fn scoped(tree: &Tree, id: ItemId) -> String {
    let item = tree.item(id);
    item.scope.map_or_else(
        || item.name.clone(),
        |scope| format!("{}::{}", scoped(tree, scope), item.name),
    )
}

fn ty(tree: &Tree, of: &Type) -> String {
    let bounded = |name: String, bound: &Option<u32>| {
        bound.map_or(name.clone(), |bound| format!("{name}<{bound}>"))
    };
    match of {
        Type::String { bound } => bounded("string".into(), bound),
        Type::WString { bound } => bounded("wstring".into(), bound),
        Type::Fixed { digits, scale } => format!("fixed<{digits}, {scale}>"),
        Type::Sequence {
            element,
            bound: None,
        } => format!("sequence<{}>", ty(tree, element)),
        Type::Sequence {
            element,
            bound: Some(bound),
        } => format!("sequence<{}, {bound}>", ty(tree, element)),
        Type::Array {
            element,
            dimensions,
        } => format!("{}{dimensions:?}", ty(tree, element)),
        Type::Map { key, value, bound } => {
            format!("map<{}, {}, {bound:?}>", ty(tree, key), ty(tree, value))
        }
        Type::Named(id) => scoped(tree, *id),
        simple => format!("{simple:?}"),
    }
}

fn value(tree: &Tree, of: &Value) -> String {
    match of {
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Fixed { unscaled, scale } => format!("{unscaled}e-{scale}"),
        Value::Boolean(value) => value.to_string(),
        Value::Char(value) => format!("{value:?}"),
        Value::Text(value) => format!("{value:?}"),
        Value::Enumerator(id, at) => match &tree.item(*id).kind {
            ItemKind::Enum { enumerators } => {
                format!("{}::{}", scoped(tree, *id), enumerators[*at as usize].name)
            }
            _ => "not an enumerator".to_owned(),
        },
    }
}

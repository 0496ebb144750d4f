//! The Rust names that `@rust_name("...")` and the option [`crate::Options::rust_names`] choose for declarations.

use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{
    Annotation, AnnotationParameter, Attribute, BitField, Enumerator, Flag, Item, ItemKind, Member,
    Operation, Parameter, StateMember, Tree, UnionCase,
};

/// The annotation that chooses a name.
pub(crate) const RUST_NAME: &str = "rust_name";

/// A declaration whose Rust name may be chosen.
pub(crate) trait Declared {
    /// Its IDL name.
    fn name(&self) -> &str;
    /// The place of the name.
    fn location(&self) -> Location;
    fn annotations(&self) -> &[Annotation];
    fn annotations_mut(&mut self) -> &mut Vec<Annotation>;

    /// The chosen Rust name, if there is one.
    fn chosen(&self) -> Option<&str> {
        let chosen = self.annotations().iter().rev();
        let mut chosen = chosen.filter(|annotation| annotation.name == RUST_NAME);
        chosen.next().map(value_of)
    }

    /// Chooses the Rust name. A later choice replaces an earlier one.
    fn choose(&mut self, name: &str) {
        let location = self.location();
        self.annotations_mut().push(Annotation {
            name: RUST_NAME.to_owned(),
            parameters: vec![AnnotationParameter {
                name: String::new(),
                value: format!("\"{name}\""),
            }],
            location,
        });
    }
}

macro_rules! declared {
    ($($kind:ident)*) => {$(
        impl Declared for $kind {
            fn name(&self) -> &str {
                &self.name
            }
            fn location(&self) -> Location {
                self.location
            }
            fn annotations(&self) -> &[Annotation] {
                &self.annotations
            }
            fn annotations_mut(&mut self) -> &mut Vec<Annotation> {
                &mut self.annotations
            }
        }
    )*};
}
declared!(Item Operation Attribute Member Enumerator Flag BitField Parameter);

/// The name in the annotation; empty if it has none.
fn value_of(annotation: &Annotation) -> &str {
    let value = annotation.parameters.first().map(|first| &*first.value);
    let quoted = value.and_then(|value| value.strip_prefix('"')?.strip_suffix('"'));
    quoted.unwrap_or_default()
}

/// Applies the options `choices`, each `IDL::NAME=RUST_NAME`. Returns a diagnostic for each that names nothing.
pub(crate) fn apply(choices: &[String], tree: &mut Tree) -> Vec<Diagnostic> {
    let wrong = choices.iter().filter(|choice| {
        let names = choice.split_once('=');
        !names.is_some_and(|(idl, rust)| choose(tree, idl.trim_start_matches("::"), rust))
    });
    wrong
        .map(|choice| {
            let message = format!("the Rust name `{choice}` applies to no declaration");
            Diagnostic::error(message).help(
                "write `Module::Interface::operation=rust_name`, with the names as the IDL spells them",
            )
        })
        .collect()
}

/// Chooses `rust` for the declaration with the full name `idl`. Returns false if there is none.
fn choose(tree: &mut Tree, idl: &str, rust: &str) -> bool {
    let (scope, name) = idl.rsplit_once("::").unwrap_or(("", idl));
    let found = |wanted: &str| tree.ids().find(|&id| tree.full_name(id) == wanted);
    let (item, inside) = (found(idl), found(scope));
    if let Some(id) = item {
        tree.items[id.0 as usize].choose(rust);
        return true;
    }
    let Some(id) = inside else {
        return false;
    };
    let parts = parts_mut(&mut tree.items[id.0 as usize].kind);
    let part = parts.into_iter().find(|part| part.name() == name);
    part.map(|part| part.choose(rust)).is_some()
}

/// The parts of a declaration that have names but are no items.
fn parts_mut(kind: &mut ItemKind) -> Vec<&mut dyn Declared> {
    fn all<D: Declared>(declared: &mut [D]) -> Vec<&mut dyn Declared> {
        let declared = declared.iter_mut();
        declared.map(|one| one as &mut dyn Declared).collect()
    }
    match kind {
        ItemKind::Interface(interface) => {
            let mut parts = all(&mut interface.operations);
            parts.extend(all(&mut interface.attributes));
            parts
        }
        ItemKind::Valuetype(value) => {
            let mut parts = all(&mut value.operations);
            parts.extend(all(&mut value.attributes));
            parts.extend(all(&mut value.factories));
            let state = value.state.iter_mut();
            let state = state.map(|StateMember { member, .. }| member as &mut dyn Declared);
            parts.extend(state);
            parts
        }
        ItemKind::Struct { members } | ItemKind::Exception { members } => all(members),
        ItemKind::Union(union) => {
            let cases = union.cases.iter_mut();
            let members = cases.map(|UnionCase { member, .. }| member as &mut dyn Declared);
            members.collect()
        }
        ItemKind::Enum { enumerators } => all(enumerators),
        ItemKind::Bitmask(mask) => all(&mut mask.flags),
        ItemKind::Bitset(set) => all(&mut set.fields),
        _ => Vec::new(),
    }
}

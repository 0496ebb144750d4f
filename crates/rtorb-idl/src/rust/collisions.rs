//! Finds IDL names of one scope that become the same Rust name, before anything is generated.

use std::collections::BTreeMap;

use proc_macro2::Ident;

use super::scope::Scope;
use super::{enums, names, operations, structs, unions, values};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{
    Direction, InterfaceFlavour, Item, ItemId, ItemKind, Member, Operation, Parameter, Tree,
};

/// A diagnostic for each pair of names in `scope` and below that become the same Rust name.
pub(super) fn find(scope: Scope<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    find_below(scope, &mut found);
    found
}

fn find_below(scope: Scope<'_>, found: &mut Vec<Diagnostic>) {
    find_among(scope, found);
    for id in scope.items() {
        find_inside(scope.tree, id, found);
        find_below(scope.within(id), found);
    }
}

/// The names of one Rust namespace, each with its first origin.
#[derive(Default)]
struct Namespace {
    taken: BTreeMap<String, Origin>,
}

/// The IDL declaration that a Rust name comes from.
struct Origin {
    description: String,
    location: Location,
}

impl Namespace {
    /// Adds a Rust name made from the IDL name `idl`.
    fn claim(&mut self, rust: &Ident, idl: &str, location: Location, found: &mut Vec<Diagnostic>) {
        self.claim_for(rust, format!("`{idl}`"), location, found);
    }

    fn claim_members<'m>(
        &mut self,
        members: impl IntoIterator<Item = &'m Member>,
        rust: fn(&str) -> Ident,
        found: &mut Vec<Diagnostic>,
    ) {
        for Member { name, location, .. } in members {
            self.claim(&rust(name), name, *location, found);
        }
    }

    /// Adds a Rust name that has no IDL name of its own.
    fn claim_for(
        &mut self,
        rust: &Ident,
        description: String,
        location: Location,
        found: &mut Vec<Diagnostic>,
    ) {
        let rust = rust.to_string();
        let Some(first) = self.taken.get(&rust) else {
            let origin = Origin {
                description,
                location,
            };
            self.taken.insert(rust, origin);
            return;
        };
        let message = format!(
            "{} and {description} would both be `{rust}` in Rust",
            first.description
        );
        found.push(
            Diagnostic::error(message)
                .at(location, format!("becomes `{rust}`"))
                .at(first.location, format!("also becomes `{rust}`"))
                .help("rename one of them in the IDL"),
        );
    }
}

/// Searches the items of one scope. Types and modules share a namespace; constants and tuple structs share another.
fn find_among(scope: Scope<'_>, found: &mut Vec<Diagnostic>) {
    let tree = scope.tree;
    let mut types = Namespace::default();
    let mut in_expressions = Namespace::default();
    for id in scope.items() {
        let item = tree.item(id);
        let Item { name, location, .. } = item;
        let rust = names::item_ident(item);
        if let ItemKind::Constant { .. } = item.kind {
            in_expressions.claim(&rust, name, *location, found);
            continue;
        }
        types.claim(&rust, name, *location, found);
        match &item.kind {
            ItemKind::Interface(interface) => {
                in_expressions.claim(&rust, name, *location, found);
                if interface.flavour == InterfaceFlavour::Plain {
                    let servant = format!("the servant trait of `{name}`");
                    types.claim_for(&names::servant_ident(item), servant, *location, found);
                }
                for call in operations::own(tree, id) {
                    if !call.raises.is_empty() {
                        let error = format!("the error type of `{}`", call.wire_name);
                        types.claim_for(&call.error_ident(tree), error, call.location, found);
                    }
                }
            }
            ItemKind::Valuetype(_) if values::has_operations(tree, id) => {
                let operations = format!("the operations of `{name}`");
                types.claim_for(
                    &values::operations_ident(item),
                    operations,
                    *location,
                    found,
                );
            }
            _ => {}
        }
        let is_module = matches!(item.kind, ItemKind::Module);
        if !is_module && scope.within(id).items().next().is_some() {
            let module = format!("the module of the declarations inside `{name}`");
            types.claim_for(&names::module_ident(name), module, *location, found);
        }
    }
}

/// Searches the members, enumerators, methods and parameters of one item.
fn find_inside(tree: &Tree, id: ItemId, found: &mut Vec<Diagnostic>) {
    let item = tree.item(id);
    let mut taken = Namespace::default();
    match &item.kind {
        ItemKind::Struct { .. } | ItemKind::Exception { .. } | ItemKind::Valuetype(_) => {
            taken.claim_members(structs::members(tree, id), names::value_ident, found);
        }
        ItemKind::Union(union) => {
            if unions::has_no_member_variant(union) {
                let variant = names::type_ident(unions::NO_MEMBER);
                let description = "the variant without a member".to_owned();
                taken.claim_for(&variant, description, item.location, found);
            }
            let members = union.cases.iter().map(|case| &case.member);
            taken.claim_members(members, names::type_ident, found);
        }
        ItemKind::Enum { enumerators } => {
            for enumerator in enumerators {
                let variant = enums::variant(enumerator);
                taken.claim(&variant, &enumerator.name, enumerator.location, found);
            }
        }
        ItemKind::Interface(interface) => {
            for call in operations::all(tree, id) {
                taken.claim(&call.method, &call.wire_name, call.location, found);
            }
            for operation in &interface.operations {
                find_among_parameters(operation, found);
            }
        }
        _ => {}
    }
}

fn find_among_parameters(operation: &Operation, found: &mut Vec<Diagnostic>) {
    let mut taken = Namespace::default();
    for Parameter {
        name,
        location,
        direction,
        ..
    } in &operation.parameters
    {
        if *direction != Direction::Out {
            taken.claim(&names::value_ident(name), name, *location, found);
        }
    }
}

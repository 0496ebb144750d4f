//! IDL names that become one Rust name: found before anything is generated.

use std::collections::BTreeMap;

use proc_macro2::Ident;

use super::scope::Scope;
use super::{enums, names, operations, unions, values};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{Direction, InterfaceFlavour, ItemId, ItemKind, Member, Operation, Tree};

/// A diagnostic for every pair of names in `scope` and below that Rust cannot tell apart.
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

/// What one Rust namespace holds already: for a Rust name what it is made of.
#[derive(Default)]
struct Namespace {
    taken: BTreeMap<String, Origin>,
}

/// What a Rust name is made of.
struct Origin {
    what: String,
    location: Location,
}

impl Origin {
    fn name(idl: &str, location: Location) -> Self {
        Self {
            what: format!("`{idl}`"),
            location,
        }
    }
}

impl Namespace {
    fn claim(&mut self, rust: Ident, origin: Origin, found: &mut Vec<Diagnostic>) {
        let rust = rust.to_string();
        if let Some(first) = self.taken.get(&rust) {
            found.push(
                Diagnostic::error(format!(
                    "{} and {} would both be `{rust}` in Rust",
                    first.what, origin.what
                ))
                .at(origin.location, format!("becomes `{rust}`"))
                .at(first.location, format!("`{rust}` is made of this already"))
                .help("rename one of them in the IDL"),
            );
        } else {
            self.taken.insert(rust, origin);
        }
    }
}

/// Among the items of one scope. Types and modules share a namespace; constants and tuple structs share another.
fn find_among(scope: Scope<'_>, found: &mut Vec<Diagnostic>) {
    let tree = scope.tree;
    let mut types = Namespace::default();
    let mut in_expressions = Namespace::default();
    for id in scope.items() {
        let item = tree.item(id);
        let name = names::item_ident(item);
        let itself = || Origin::name(&item.name, item.location);
        match &item.kind {
            ItemKind::Constant { .. } => in_expressions.claim(name, itself(), found),
            ItemKind::Interface(interface) => {
                types.claim(name.clone(), itself(), found);
                in_expressions.claim(name, itself(), found);
                if interface.flavour == InterfaceFlavour::Plain {
                    let what = format!("the servant trait of `{}`", item.name);
                    types.claim(
                        names::servant_ident(item),
                        Origin {
                            what,
                            location: item.location,
                        },
                        found,
                    );
                }
                for call in operations::own(tree, id)
                    .iter()
                    .filter(|call| !call.raises.is_empty())
                {
                    let what = format!("the error type of `{}`", call.wire_name);
                    types.claim(
                        call.error_ident(tree),
                        Origin {
                            what,
                            location: call.location,
                        },
                        found,
                    );
                }
            }
            ItemKind::Valuetype(_) => {
                types.claim(name, itself(), found);
                if values::has_operations(tree, id) {
                    let what = format!("the operations of `{}`", item.name);
                    types.claim(
                        values::operations_ident(item),
                        Origin {
                            what,
                            location: item.location,
                        },
                        found,
                    );
                }
            }
            _ => types.claim(name, itself(), found),
        }
        if !matches!(item.kind, ItemKind::Module { .. })
            && scope.within(id).items().next().is_some()
        {
            let what = format!("the module of what `{}` declares", item.name);
            types.claim(
                names::module_ident(&item.name),
                Origin {
                    what,
                    location: item.location,
                },
                found,
            );
        }
    }
}

/// Among the members, enumerators, methods and parameters of one item.
fn find_inside(tree: &Tree, id: ItemId, found: &mut Vec<Diagnostic>) {
    let item = tree.item(id);
    let mut taken = Namespace::default();
    match &item.kind {
        ItemKind::Struct { members, .. } | ItemKind::Exception { members, .. } => {
            for Member { name, location, .. } in members {
                taken.claim(
                    names::value_ident(name),
                    Origin::name(name, *location),
                    found,
                );
            }
        }
        ItemKind::Valuetype(_) => {
            for Member { name, location, .. } in values::state(tree, id) {
                taken.claim(
                    names::value_ident(name),
                    Origin::name(name, *location),
                    found,
                );
            }
        }
        ItemKind::Union(union) => {
            if unions::has_no_member_variant(union) {
                let what = "a discriminator without a member".to_owned();
                taken.claim(
                    names::type_ident(unions::NO_MEMBER),
                    Origin {
                        what,
                        location: item.location,
                    },
                    found,
                );
            }
            for Member { name, location, .. } in union.cases.iter().map(|case| &case.member) {
                taken.claim(
                    names::type_ident(name),
                    Origin::name(name, *location),
                    found,
                );
            }
        }
        ItemKind::Enum { enumerators } => {
            for enumerator in enumerators {
                taken.claim(
                    enums::variant(enumerator),
                    Origin::name(&enumerator.name, enumerator.location),
                    found,
                );
            }
        }
        ItemKind::Interface(interface) => {
            for call in operations::all(tree, id) {
                taken.claim(
                    call.method,
                    Origin::name(&call.wire_name, call.location),
                    found,
                );
            }
            interface
                .operations
                .iter()
                .for_each(|operation| find_among_parameters(operation, found));
        }
        _ => {}
    }
}

fn find_among_parameters(operation: &Operation, found: &mut Vec<Diagnostic>) {
    let mut taken = Namespace::default();
    for parameter in operation
        .parameters
        .iter()
        .filter(|parameter| parameter.direction != Direction::Out)
    {
        taken.claim(
            names::value_ident(&parameter.name),
            Origin::name(&parameter.name, parameter.location),
            found,
        );
    }
}

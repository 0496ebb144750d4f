//! IDL names that become one Rust name: found before anything is generated.

use std::collections::BTreeMap;

use super::operations::{self, Call};
use super::scope::{Scope, items_inside};
use super::{names, unions};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{Direction, InterfaceFlavour, Item, ItemId, ItemKind, Member, Tree};

/// A diagnostic for every pair of names that Rust cannot tell apart.
pub(super) fn find(tree: &Tree) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    find_among(tree, Scope::outermost(tree).items(), &mut found);
    for (number, item) in tree.items.iter().enumerate() {
        find_among(tree, items_inside(item), &mut found);
        let id = ItemId(u32::try_from(number).expect("an arena of items is far smaller"));
        find_inside(tree, id, item, &mut found);
    }
    found
}

/// What one Rust namespace holds already: for a Rust name its IDL name and its place.
#[derive(Default)]
struct Namespace<'t> {
    taken: BTreeMap<String, (&'t str, Location)>,
}

impl<'t> Namespace<'t> {
    fn claim(
        &mut self,
        rust: String,
        idl: &'t str,
        location: Location,
        found: &mut Vec<Diagnostic>,
    ) {
        if let Some(&(first, place)) = self.taken.get(&rust) {
            found.push(
                Diagnostic::error(format!(
                    "`{first}` and `{idl}` would both be `{rust}` in Rust"
                ))
                .at(location, format!("becomes `{rust}`"))
                .at(place, format!("`{rust}` is made of this already"))
                .help("rename one of them in the IDL"),
            );
        } else {
            self.taken.insert(rust, (idl, location));
        }
    }
}

/// Among the items of one scope. Types and modules share a namespace; constants and tuple structs share another.
fn find_among(tree: &Tree, items: &[ItemId], found: &mut Vec<Diagnostic>) {
    let mut types = Namespace::default();
    let mut values = Namespace::default();
    for &id in items {
        let item = tree.item(id);
        let name = names::item_ident(item).to_string();
        let mut claim_type = |rust: String| types.claim(rust, &item.name, item.location, found);
        match &item.kind {
            ItemKind::Constant { .. } => values.claim(name, &item.name, item.location, found),
            ItemKind::Interface(interface) => {
                claim_type(name.clone());
                if interface.flavour == InterfaceFlavour::Plain {
                    claim_type(names::servant_ident(item).to_string());
                }
                for call in operations::own(tree, id)
                    .iter()
                    .filter(|call| !call.raises.is_empty())
                {
                    types.claim(
                        call.error_ident(tree).to_string(),
                        &item.name,
                        call.location,
                        found,
                    );
                }
                values.claim(name, &item.name, item.location, found);
            }
            _ => claim_type(name),
        }
        if !matches!(item.kind, ItemKind::Module { .. }) && !items_inside(item).is_empty() {
            types.claim(
                names::module_ident(&item.name).to_string(),
                &item.name,
                item.location,
                found,
            );
        }
    }
}

/// Among the members, enumerators, methods and parameters of one item.
fn find_inside<'t>(tree: &'t Tree, id: ItemId, item: &'t Item, found: &mut Vec<Diagnostic>) {
    let mut names = Namespace::default();
    match &item.kind {
        ItemKind::Struct { members, .. } | ItemKind::Exception { members, .. } => {
            for Member { name, location, .. } in members {
                names.claim(names::value_ident(name).to_string(), name, *location, found);
            }
        }
        ItemKind::Union(union) => {
            if unions::has_no_member_variant(union) {
                names.claim(
                    unions::NO_MEMBER.to_owned(),
                    "(no member)",
                    item.location,
                    found,
                );
            }
            for Member { name, location, .. } in union.cases.iter().map(|case| &case.member) {
                names.claim(names::type_ident(name).to_string(), name, *location, found);
            }
        }
        ItemKind::Enum { enumerators } => {
            for enumerator in enumerators {
                let variant = names::type_ident(&enumerator.name).to_string();
                names.claim(variant, &enumerator.name, enumerator.location, found);
            }
        }
        ItemKind::Interface(interface) => {
            find_among_methods(&operations::all(tree, id), found);
            for operation in &interface.operations {
                let mut names = Namespace::default();
                for parameter in operation
                    .parameters
                    .iter()
                    .filter(|parameter| parameter.direction != Direction::Out)
                {
                    let name = names::value_ident(&parameter.name).to_string();
                    names.claim(name, &parameter.name, parameter.location, found);
                }
            }
        }
        _ => {}
    }
}

fn find_among_methods(calls: &[Call<'_>], found: &mut Vec<Diagnostic>) {
    let mut methods = Namespace::default();
    for call in calls {
        methods.claim(
            call.method.to_string(),
            &call.wire_name,
            call.location,
            found,
        );
    }
}

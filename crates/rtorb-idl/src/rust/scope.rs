//! Where generated code stands, and how it names from there what stands elsewhere.

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::names;
use crate::tree::{Item, ItemId, ItemKind, Tree};

/// The Rust module that code is generated into.
///
/// Paths lead over `super::` and never begin at `crate::`, so that the text works inside any module that includes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'t> {
    /// What is generated.
    pub(super) tree: &'t Tree,
    /// The IDL scope whose module it is; `None` for the outermost.
    inside: Option<ItemId>,
    /// What cannot be generated and is not needed, with the reason.
    left_out: &'t BTreeMap<ItemId, String>,
}

impl<'t> Scope<'t> {
    /// The outermost module.
    pub(super) fn outermost(tree: &'t Tree, left_out: &'t BTreeMap<ItemId, String>) -> Self {
        Self {
            tree,
            inside: None,
            left_out,
        }
    }

    /// The module of what is declared inside `id`.
    pub(super) fn within(self, id: ItemId) -> Self {
        Self {
            inside: Some(id),
            ..self
        }
    }

    /// The items of this scope that are generated.
    pub(super) fn items(self) -> impl Iterator<Item = ItemId> + Clone + use<'t> {
        let declared = match self.inside {
            None => &self.tree.roots,
            Some(id) => items_inside(self.tree.item(id)),
        };
        declared
            .iter()
            .copied()
            .filter(move |id| !self.left_out.contains_key(id))
    }

    /// The item `id` as it is named from here.
    pub(super) fn path(self, id: ItemId) -> TokenStream {
        let name = names::item_ident(self.tree.item(id));
        self.path_beside(id, &name)
    }

    /// What is called `name` and stands in the same module as the item `id`.
    pub(super) fn path_beside(self, id: ItemId, name: &Ident) -> TokenStream {
        let here = modules(self.tree, self.inside);
        let there = modules(self.tree, self.tree.item(id).scope);
        let common = here
            .iter()
            .zip(&there)
            .take_while(|(here, there)| here == there)
            .count();
        let up = here[common..].iter().map(|_| quote!(super::));
        let down = there[common..]
            .iter()
            .map(|&module| names::module_ident(&self.tree.item(module).name));
        quote!(#(#up)* #(#down::)* #name)
    }

    /// A name for a type parameter that hides no type of this module.
    pub(super) fn type_parameter(self, wanted: &str) -> Ident {
        let hides = |id: ItemId| names::item_ident(self.tree.item(id)) == wanted;
        let name = if self.items().any(hides) {
            format!("__{wanted}")
        } else {
            wanted.to_owned()
        };
        Ident::new(&name, proc_macro2::Span::call_site())
    }
}

/// The items declared inside `item`.
pub(super) fn items_inside(item: &Item) -> &[ItemId] {
    match &item.kind {
        ItemKind::Module { items }
        | ItemKind::Struct { items, .. }
        | ItemKind::Exception { items, .. }
        | ItemKind::Other { items, .. } => items,
        ItemKind::Interface(interface) => &interface.items,
        ItemKind::Union(union) => &union.items,
        ItemKind::Valuetype(valuetype) => &valuetype.items,
        _ => &[],
    }
}

/// `CosNaming::NamingContext` for messages and `Display`.
pub(crate) fn idl_name(tree: &Tree, id: ItemId) -> String {
    let names = modules(tree, Some(id))
        .into_iter()
        .map(|id| tree.item(id).name.as_str());
    names.collect::<Vec<_>>().join("::")
}

/// The scopes from the outermost to `scope`.
fn modules(tree: &Tree, scope: Option<ItemId>) -> Vec<ItemId> {
    let mut chain: Vec<ItemId> = std::iter::successors(scope, |&id| tree.item(id).scope).collect();
    chain.reverse();
    chain
}

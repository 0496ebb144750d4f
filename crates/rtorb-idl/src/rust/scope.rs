//! The Rust module of generated code, and the paths from it to other generated items.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::layouts::Layouts;
use super::{Additions, names};
use crate::tree::{ItemId, Tree};

/// The facts about a tree that all generated code depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'t> {
    /// The tree to generate from.
    pub(super) tree: &'t Tree,
    /// The properties of its types.
    pub(super) layouts: &'t Layouts,
    /// Every interface whose operations some reference type inherits.
    pub(super) bases: &'t BTreeSet<ItemId>,
    /// Items that are omitted because they cannot be generated and are not used, with the reason.
    pub(super) left_out: &'t BTreeMap<ItemId, String>,
    pub(super) additions: Additions,
}

/// The Rust module that code is generated into.
///
/// Paths lead over `super::` and never begin at `crate::`, so that the text works inside any module that includes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'t> {
    context: Context<'t>,
    /// The IDL scope whose module it is; `None` for the outermost.
    inside: Option<ItemId>,
}

impl<'t> Deref for Scope<'t> {
    type Target = Context<'t>;

    fn deref(&self) -> &Context<'t> {
        &self.context
    }
}

impl<'t> Scope<'t> {
    /// The outermost module.
    pub(super) fn outermost(context: Context<'t>) -> Self {
        Self {
            context,
            inside: None,
        }
    }

    /// The module of the declarations inside `id`.
    pub(super) fn within(self, id: ItemId) -> Self {
        Self {
            inside: Some(id),
            ..self
        }
    }

    /// The items of this scope that are generated.
    pub(super) fn items(self) -> impl Iterator<Item = ItemId> + Clone + use<'t> {
        let Context { tree, left_out, .. } = self.context;
        let declared = match self.inside {
            None => tree.roots.as_slice(),
            Some(id) => tree.item(id).items.as_slice(),
        };
        declared
            .iter()
            .copied()
            .filter(move |id| !left_out.contains_key(id))
    }

    /// The path of the item `id` from this module.
    pub(super) fn path(self, id: ItemId) -> TokenStream {
        let name = names::item_ident(self.tree.item(id));
        self.path_beside(id, &name)
    }

    /// The path of the Rust item `name` in the module of the item `id`.
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
            .map(|&module| names::module_ident(self.tree.item(module)));
        quote!(#(#up)* #(#down::)* #name)
    }

    /// The path of the Rust item `name` in the outermost module.
    pub(super) fn outermost_path(self, name: &str) -> TokenStream {
        let name = Ident::new(name, proc_macro2::Span::call_site());
        let up = modules(self.tree, self.inside);
        let up = up.iter().map(|_| quote!(super::));
        quote!(#(#up)* #name)
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

/// The scopes from the outermost to `scope`.
fn modules(tree: &Tree, scope: Option<ItemId>) -> Vec<ItemId> {
    let mut chain: Vec<ItemId> = std::iter::successors(scope, |&id| tree.item(id).scope).collect();
    chain.reverse();
    chain
}

//! How the reference type of a derived interface contains the types of its bases.
//!
//! A reference type dereferences to its first base, which has the methods of that base, and so on. With several bases, the
//! types form one chain: the first base with all that it contains, and around it what the other bases add. A type that stands
//! in some chain around another content than its own is generic over it.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;

use super::operations;
use super::scope::Scope;
use crate::tree::{InterfaceFlavour, ItemId, ItemKind, Tree};

/// The places of reference types in each other.
#[derive(Debug)]
pub(super) struct Inheritance {
    bases: BTreeSet<ItemId>,
    generic: BTreeSet<ItemId>,
}

impl Inheritance {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut inheritance = Self {
            bases: BTreeSet::new(),
            generic: BTreeSet::new(),
        };
        for id in tree.ids().filter(|&id| is_reference_type(tree, id)) {
            let chain = operations::ancestors(tree, id);
            for (place, &base) in chain.iter().enumerate() {
                inheritance.bases.insert(base);
                if chain[..place] != operations::ancestors(tree, base) {
                    inheritance.generic.insert(base);
                }
            }
        }
        inheritance
    }

    /// True if another reference type contains that of the interface `id`.
    pub(super) fn is_base(&self, id: ItemId) -> bool {
        self.bases.contains(&id)
    }

    /// True if the reference type of the interface `id` is generic over its content.
    pub(super) fn is_generic(&self, id: ItemId) -> bool {
        self.generic.contains(&id)
    }
}

/// True if the reference type of the interface `id` contains an untyped reference and nothing else.
pub(super) fn is_plain(scope: Scope<'_>, id: ItemId) -> bool {
    !scope.inheritance.is_generic(id) && operations::ancestors(scope.tree, id).is_empty()
}

/// The untyped reference inside `self` in a method of the interface `id`.
pub(super) fn object(scope: Scope<'_>, id: ItemId) -> TokenStream {
    if is_plain(scope, id) {
        quote!(self.0)
    } else {
        quote!(::rtorb::codegen::Content::object(&self.0))
    }
}

fn is_reference_type(tree: &Tree, id: ItemId) -> bool {
    matches!(&tree.item(id).kind, ItemKind::Interface(interface) if interface.flavour != InterfaceFlavour::Local)
}

/// The type inside the reference type of the interface `id`.
pub(super) fn content(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let chain = operations::ancestors(scope.tree, id);
    let innermost = quote!(::rtorb::codegen::ObjectRef);
    let places = chain.iter().enumerate();
    places.fold(innermost, |content, (place, &base)| {
        let path = scope.path(base);
        if chain[..place] == operations::ancestors(scope.tree, base) {
            path
        } else {
            quote!(#path<#content>)
        }
    })
}

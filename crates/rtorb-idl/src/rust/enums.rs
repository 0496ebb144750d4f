//! IDL enums.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::scope::Scope;
use super::{documentation, names, type_codes};
use crate::tree::{Enumerator, ItemId};

/// The enum `id`, its encoding and its TypeCode.
pub(super) fn generate(scope: Scope<'_>, id: ItemId, enumerators: &[Enumerator]) -> TokenStream {
    let item = scope.tree.item(id);
    let documentation = documentation::attributes(&item.documentation);
    let name = names::item_ident(item);
    let variants: Vec<Ident> = enumerators.iter().map(variant).collect();
    let documentations = enumerators
        .iter()
        .map(|enumerator| documentation::attributes(&enumerator.documentation));
    // The default is the first enumerator, as in IDL4's mapping to C++.
    let defaults = (0..enumerators.len()).map(|index| (index == 0).then(|| quote!(#[default])));
    let ordinals = (0..enumerators.len()).map(Literal::usize_unsuffixed);
    let typed = type_codes::typed(scope, id);
    quote! {
        #documentation
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum #name { #(#documentations #defaults #variants,)* }
        ::rtorb::codegen::cdr_enum!(#name { #(#variants = #ordinals),* });
        #typed
    }
}

/// The variant of an enumerator.
pub(super) fn variant(enumerator: &Enumerator) -> Ident {
    names::type_ident(enumerator)
}

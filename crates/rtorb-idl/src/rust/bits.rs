//! IDL bitmasks and bitsets: structs around the integer that they are on the wire.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::scope::Scope;
use super::{documentation, names, type_codes};
use crate::tree::{Bitmask, Bitset, ItemId, Type};

/// The method of every bitmask.
pub(super) const CONTAINS: &str = "contains";

/// The bitmask `id`: a constant for each flag.
pub(super) fn mask(scope: Scope<'_>, id: ItemId, mask: &Bitmask) -> TokenStream {
    let definition = define(scope, id, &mask.holder);
    let name = names::item_ident(scope.tree.item(id));
    let holder = scope.owned(&mask.holder);
    let flags = mask.flags.iter().map(|flag| {
        let documentation = documentation::attributes(&flag.documentation);
        let (flag, position) = (names::constant_ident(flag), flag.position);
        let position = Literal::u32_unsuffixed(position);
        quote!(#documentation #flag = #position)
    });
    let typed = type_codes::typed(scope, id);
    quote! {
        #definition
        ::rtorb::codegen::bitmask!(#name(#holder) { #(#flags),* });
        #typed
    }
}

/// The bitset `id`: two methods for each field.
pub(super) fn set(scope: Scope<'_>, id: ItemId, set: &Bitset) -> TokenStream {
    let definition = define(scope, id, &set.holder);
    let name = names::item_ident(scope.tree.item(id));
    let holder = scope.owned(&set.holder);
    let fields = set.fields.iter().map(|field| {
        let documentation = documentation::attributes(&field.documentation);
        let (get, set) = (names::value_ident(field), names::set_ident(field));
        let ty = scope.owned(&field.ty);
        let [offset, width] = [field.offset, field.width].map(Literal::u32_unsuffixed);
        // Every value of the type fits, or not.
        let is_whole = field.ty.bits() == Some(field.width);
        let form = format_ident!("{}", if is_whole { "whole" } else { "part" });
        quote!(#form #documentation #get #set: #ty = #offset, #width)
    });
    let typed = type_codes::typed(scope, id);
    quote! {
        #definition
        ::rtorb::codegen::bitset!(#name(#holder) { #(#fields;)* });
        #typed
    }
}

fn define(scope: Scope<'_>, id: ItemId, holder: &Type) -> TokenStream {
    let item = scope.tree.item(id);
    let documentation = documentation::attributes(&item.documentation);
    let name = names::item_ident(item);
    let holder = scope.owned(holder);
    quote! {
        #documentation
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct #name(pub #holder);
    }
}

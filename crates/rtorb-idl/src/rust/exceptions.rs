//! IDL exceptions: structs that are errors.

use proc_macro2::TokenStream;
use quote::quote;

use super::scope::Scope;
use super::{names, structs, type_codes};
use crate::tree::ItemId;

/// The exception `id`, its encoding, its TypeCode and its `Error` impl.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let definition = structs::define(scope, id);
    let coding = structs::encode_and_decode(scope, id);
    let typed = type_codes::typed(scope, id);
    let name = names::item_ident(item);
    let repository_id = &item.repository_id;
    let shown_name = scope.tree.full_name(id);
    let members = structs::members(scope.tree, id);
    let fields = members.iter().map(|member| structs::field(member));
    let shown_fields = members.iter().map(|member| &member.name);
    quote! {
        #definition
        #coding
        #typed
        impl ::rtorb::codegen::UserException for #name {
            const REPOSITORY_ID: &'static str = #repository_id;
        }
        impl ::core::fmt::Display for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(#shown_name)#(.field(#shown_fields, &self.#fields))*.finish()
            }
        }
        impl ::core::error::Error for #name {}
    }
}

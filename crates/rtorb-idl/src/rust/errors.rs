//! The error enums of operations that raise user exceptions.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::names;
use super::operations::Call;
use super::scope::Scope;
use crate::tree::{ItemId, Tree};

/// An error enum for each of `calls` that raises exceptions: a variant for each exception, and `System`.
pub(super) fn generate<'c>(
    scope: Scope<'_>,
    calls: impl IntoIterator<Item = &'c Call<'c>>,
) -> TokenStream {
    let raising = calls.into_iter().filter(|call| !call.raises.is_empty());
    raising.map(|call| error_enum(scope, call)).collect()
}

fn error_enum(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
    let name = call.error_ident(scope.tree);
    let variants = variants(scope.tree, &call.raises);
    let names: Vec<&Ident> = variants.iter().map(|(name, _)| name).collect();
    let types: Vec<TokenStream> = variants.iter().map(|(_, id)| scope.path(*id)).collect();
    let eq = call.raises.iter().all(|&id| scope.layouts.is_eq(id));
    let eq = eq.then(|| quote!(, Eq));
    let summary = format!(
        " Why `{}` of `{}` failed.",
        call.wire_name,
        scope.tree.full_name(call.owner)
    );
    quote! {
        #[doc = #summary]
        #[derive(Clone, Debug, PartialEq #eq)]
        pub enum #name {
            #(
                /// The object raised this exception.
                #names(#types),
            )*
            /// The call failed with a system exception.
            System(::rtorb::codegen::SystemException),
        }
        ::rtorb::codegen::operation_error!(#name: #(#names(#types)),*);
    }
}

/// The exceptions with the names of their variants: the exception's own, with its scope's before it where that name
/// is taken.
pub(super) fn variants(tree: &Tree, raises: &[ItemId]) -> Vec<(Ident, ItemId)> {
    let own_name = |id: ItemId| names::stem(tree.item(id));
    raises
        .iter()
        .map(|&id| {
            let name = own_name(id);
            let is_taken = name == SYSTEM
                || raises
                    .iter()
                    .any(|&other| other != id && own_name(other) == name);
            let name = if is_taken { qualified(tree, id) } else { name };
            (format_ident!("{name}"), id)
        })
        .collect()
}

const SYSTEM: &str = "System";

/// `CosNamingNamingContextNotFound`; a global exception gets a trailing underscore.
fn qualified(tree: &Tree, id: ItemId) -> String {
    let full = tree.full_name(id);
    let mut name: String = full.split("::").map(names::upper_camel).collect();
    if tree.item(id).scope.is_none() {
        name.push('_');
    }
    name
}

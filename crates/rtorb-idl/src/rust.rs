//! The Rust back end: a checked tree becomes Rust text, as `docs/mapping.md` says.

mod collisions;
mod constants;
mod documentation;
mod enums;
mod errors;
mod exceptions;
mod interfaces;
mod names;
mod operations;
mod print;
mod refusals;
mod scope;
mod servants;
mod structs;
mod timings;
mod type_codes;
mod types;
mod unions;
mod values;

use proc_macro2::TokenStream;
use quote::quote;

use refusals::Refusals;
pub use refusals::{NOT_GENERATED, NotGenerated};
use scope::Scope;
pub(crate) use scope::idl_name;

use crate::diagnostic::Diagnostic;
use crate::tree::{InterfaceFlavour, ItemId, ItemKind, Tree};

/// Generates the Rust text of everything in `tree`, included files and all.
///
/// The text names `::rtorb::codegen` and nothing else that a crate might not have, and works inside any module. What
/// included files declare, what has no Rust and what nothing in the main file uses is named in a comment at its top.
///
/// # Errors
/// A diagnostic for each thing that has no Rust yet ([`NOT_GENERATED`]), and for each two names that Rust cannot tell
/// apart.
pub fn generate(tree: &Tree) -> Result<String, Vec<Diagnostic>> {
    let Refusals {
        mut diagnostics,
        left_out,
    } = Refusals::of(tree);
    let outermost = Scope::outermost(tree, &left_out);
    diagnostics.extend(collisions::find(outermost));
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let left_out = left_out
        .iter()
        .map(|(&id, reason)| format!("`{}`: {reason}", scope::idl_name(tree, id)));
    Ok(print::print(
        items(outermost),
        &left_out.collect::<Vec<_>>(),
    ))
}

/// Everything that `scope` declares.
fn items(scope: Scope<'_>) -> TokenStream {
    scope.items().map(|id| with_module(scope, id)).collect()
}

/// The item `id`, and the module of what is declared inside it.
fn with_module(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let generated = item_itself(scope, id);
    let inner = scope.within(id);
    let is_module = matches!(item.kind, ItemKind::Module { .. });
    if !is_module && inner.items().next().is_none() {
        return generated;
    }
    let documentation = if is_module {
        documentation::attributes(&item.documentation)
    } else {
        documentation::attributes(&[format!("Declarations inside the IDL `{}`.", item.name)])
    };
    let name = names::module_ident(&item.name);
    let content = items(inner);
    quote!(#generated #documentation pub mod #name { #content })
}

fn item_itself(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    match &item.kind {
        ItemKind::Interface(interface) if interface.flavour == InterfaceFlavour::Local => {
            servants::local(scope, id)
        }
        ItemKind::Interface(_) => interfaces::generate(scope, id),
        ItemKind::Undefined { .. } => interfaces::reference(scope, id),
        ItemKind::Struct { .. } => structs::generate(scope, id),
        ItemKind::Exception { members, .. } => exceptions::generate(scope, id, members),
        ItemKind::Union(union) => unions::generate(scope, id, union),
        ItemKind::Enum { enumerators } => enums::generate(scope, id, enumerators),
        ItemKind::Constant { ty, value } => constants::generate(scope, id, ty, value),
        ItemKind::Alias { ty } => {
            let documentation = documentation::attributes(&item.documentation);
            let name = names::item_ident(item);
            let ty = scope.owned(ty);
            quote!(#documentation pub type #name = #ty;)
        }
        ItemKind::Native => {
            let documentation = documentation::attributes(&item.documentation);
            let name = names::item_ident(item);
            quote! {
                #documentation
                pub type #name = ::std::sync::Arc<dyn ::core::any::Any + ::core::marker::Send + ::core::marker::Sync>;
            }
        }
        ItemKind::Valuetype(value) => values::generate(scope, id, value),
        ItemKind::ValueBox { ty } => values::generate_box(scope, id, ty),
        ItemKind::Module { .. } | ItemKind::Other { .. } => TokenStream::new(),
    }
}

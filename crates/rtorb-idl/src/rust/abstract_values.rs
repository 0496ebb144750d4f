//! Abstract valuetypes and `ValueBase` as types: enums of the concrete valuetypes that can stand there.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::refusals::{attributes, operations};
use super::scope::Scope;
use super::types::{innermost, parts, with_maps};
use super::{documentation, errors, names, type_codes, values};
use crate::tree::{ItemId, ItemKind, Tree, Type};

/// The abstract valuetype `id`: an enum with a variant for each concrete valuetype that inherits from it.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let name = names::item_ident(item);
    let documentation = documentation::attributes(&item.documentation);
    let concrete = concrete(scope, |tree, value| {
        values::all_with_bases(tree, value).contains(&id)
    });
    let one_of = one_of(scope, &name, &concrete);
    let typed = type_codes::typed(scope, id);
    quote!(#documentation #one_of #typed)
}

/// `ValueBase`: an enum with a variant for each concrete valuetype, if the tree uses it.
pub(super) fn value_base(scope: Scope<'_>) -> TokenStream {
    if !uses_value_base(scope.tree) {
        return TokenStream::new();
    }
    let name = format_ident!("{VALUE_BASE}");
    let one_of = one_of(scope, &name, &concrete(scope, |_, _| true));
    quote! {
        /// A value of any valuetype of the specification.
        #one_of
        ::rtorb::codegen::typed!(#name = ::rtorb::codegen::valuetype::type_code(
            "IDL:omg.org/CORBA/ValueBase:1.0", "ValueBase", 0, ::rtorb::codegen::TypeCode::NULL, []
        ));
    }
}

/// The Rust name of `ValueBase`, in the outermost module.
pub(super) const VALUE_BASE: &str = "ValueBase";

/// True if `ValueBase` is the type of a member, parameter or attribute.
pub(super) fn uses_value_base(tree: &Tree) -> bool {
    let is_value_base = |ty: &Type| {
        let mut types = with_maps(ty).into_iter();
        types.any(|ty| *innermost(ty) == Type::ValueBase)
    };
    tree.ids().any(|id| {
        let kind = &tree.item(id).kind;
        parts(kind).into_iter().any(is_value_base)
            || attributes(kind).iter().any(|one| is_value_base(&one.ty))
            || operations(kind).any(|operation| {
                let mut parameters = operation.parameters.iter();
                is_value_base(&operation.returns)
                    || parameters.any(|parameter| is_value_base(&parameter.ty))
            })
    })
}

/// The concrete valuetypes that are generated and that `is_one` accepts, boxed ones too.
fn concrete(scope: Scope<'_>, is_one: impl Fn(&Tree, ItemId) -> bool) -> Vec<ItemId> {
    let tree = scope.tree;
    let is_concrete = |id: ItemId| match &tree.item(id).kind {
        ItemKind::Valuetype(value) => !value.is_abstract,
        ItemKind::ValueBox { .. } => true,
        _ => false,
    };
    let generated = tree.ids().filter(|id| !scope.left_out.contains_key(id));
    generated
        .filter(|&id| is_concrete(id) && is_one(tree, id))
        .collect()
}

fn one_of(scope: Scope<'_>, name: &Ident, concrete: &[ItemId]) -> TokenStream {
    let variants = errors::variants(scope.tree, concrete);
    let names: Vec<&Ident> = variants.iter().map(|(name, _)| name).collect();
    let types: Vec<TokenStream> = variants.iter().map(|(_, id)| scope.path(*id)).collect();
    quote! {
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#names(::rtorb::codegen::Arc<#types>),)* }
        ::rtorb::codegen::one_of_values!(#name: #(#names(#types)),*);
    }
}

//! IDL valuetypes: structs that are passed behind an `Arc`. A shared value is sent once.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Call};
use super::scope::Scope;
use super::{abstract_values, documentation, errors, names, servants, structs, type_codes};
use crate::tree::{Item, ItemId, ItemKind, Tree, Type, Valuetype};

/// The valuetype `id`, and the trait of its operations if it has any.
pub(super) fn generate(scope: Scope<'_>, id: ItemId, value: &Valuetype) -> TokenStream {
    let operations = operations(scope, id, value);
    if value.is_abstract {
        let one_of = abstract_values::generate(scope, id);
        return quote!(#one_of #operations);
    }
    let definition = structs::define(scope, id);
    let coding = (!value.is_custom).then(|| structs::encode_and_decode(scope, id));
    let note = value.is_custom.then(|| {
        quote! {
            #[doc = " A custom valuetype: the application implements `Encode` and `Decode`, which write and read its state."]
        }
    });
    let identity = identity(scope.tree.item(id), value.is_custom);
    let typed = type_codes::typed(scope, id);
    let upcasts = bases(scope.tree, id)
        .into_iter()
        .map(|base| upcast(scope, id, base));
    quote!(#note #definition #coding #identity #typed #(#upcasts)* #operations)
}

/// The boxed valuetype `id`: a tuple struct around the boxed type.
pub(super) fn generate_box(scope: Scope<'_>, id: ItemId, ty: &Type) -> TokenStream {
    let item = scope.tree.item(id);
    let documentation = documentation::attributes(&item.documentation);
    let name = names::item_ident(item);
    let ty = scope.owned(ty);
    let coding = structs::coding(
        &name,
        &quote!(::rtorb::codegen::Encode::encode(&self.0, w)),
        &quote!(<#ty as ::rtorb::codegen::Decode>::BYTES_MIN),
        &quote!(::core::result::Result::Ok(Self(
            ::rtorb::codegen::Decode::decode(r)?
        ))),
    );
    let identity = identity(item, false);
    let typed = type_codes::typed(scope, id);
    let derives = structs::derives(scope, id);
    quote!(#documentation #derives pub struct #name(pub #ty); #coding #identity #typed)
}

/// The trait for the operations of the valuetype `item`.
pub(super) fn operations_ident(item: &Item) -> Ident {
    format_ident!("{}Operations", names::stem(item))
}

/// True if the valuetype or one of its bases has operations, and so such a trait.
pub(super) fn has_operations(tree: &Tree, id: ItemId) -> bool {
    all_with_bases(tree, id).into_iter().any(|id| {
        let ItemKind::Valuetype(value) = &tree.item(id).kind else {
            return false;
        };
        let own = value.operations.len() + value.attributes.len() + value.factories.len();
        own + value.supports.len() > 0
    })
}

/// The valuetype `id` and all that it inherits from, each once.
pub(super) fn all_with_bases(tree: &Tree, id: ItemId) -> Vec<ItemId> {
    let mut found = vec![id];
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        next += 1;
        if let ItemKind::Valuetype(value) = &tree.item(id).kind {
            let new = value.bases.iter().filter(|base| !found.contains(base));
            let new: Vec<ItemId> = new.copied().collect();
            found.extend(new);
        }
    }
    found
}

/// True if `id` is an abstract valuetype.
pub(super) fn is_abstract(tree: &Tree, id: ItemId) -> bool {
    matches!(&tree.item(id).kind, ItemKind::Valuetype(value) if value.is_abstract)
}

/// The concrete valuetypes that `id` inherits from, nearest first.
fn bases(tree: &Tree, id: ItemId) -> Vec<ItemId> {
    let ItemKind::Valuetype(value) = &tree.item(id).kind else {
        return Vec::new();
    };
    let concrete = value.bases.iter().filter(|base| !is_abstract(tree, **base));
    concrete
        .flat_map(|&base| std::iter::once(base).chain(bases(tree, base)))
        .collect()
}

fn identity(item: &Item, is_custom: bool) -> TokenStream {
    let name = names::item_ident(item);
    let repository_id = &item.repository_id;
    let custom = is_custom.then(|| {
        quote!(
            const CUSTOM: bool = true;
        )
    });
    quote! {
        impl ::rtorb::codegen::ValueType for #name {
            const REPOSITORY_ID: &'static str = #repository_id;
            #custom
        }
    }
}

fn upcast(scope: Scope<'_>, id: ItemId, base: ItemId) -> TokenStream {
    let name = names::item_ident(scope.tree.item(id));
    let fields: Vec<Ident> = structs::members(scope.tree, base)
        .into_iter()
        .map(structs::field)
        .collect();
    let derived = if fields.is_empty() {
        quote!(_)
    } else {
        quote!(derived)
    };
    let base = scope.path(base);
    quote! {
        impl ::core::convert::From<#name> for #base {
            fn from(#derived: #name) -> Self {
                Self { #(#fields: #derived.#fields),* }
            }
        }
    }
}

/// The trait of the operations. The application implements it; the operations never go over the wire.
fn operations(scope: Scope<'_>, id: ItemId, value: &Valuetype) -> TokenStream {
    if !has_operations(scope.tree, id) {
        return TokenStream::new();
    }
    let item = scope.tree.item(id);
    let name = operations_ident(item);
    let documentation = format!(
        " The operations of the IDL valuetype `{}`.",
        scope.tree.full_name(id)
    );
    let own = operations::own(scope.tree, id);
    let methods = own.iter().map(|call| call.declaration(scope));
    let factories: Vec<Call<'_>> = value
        .factories
        .iter()
        .map(|factory| Call::of_operation(id, factory))
        .collect();
    let constructors = factories.iter().map(|call| {
        let documentation = documentation::attributes(&call.documentation);
        let constructor = call.constructor(scope);
        quote!(#documentation #constructor;)
    });
    let errors = errors::generate(scope, own.iter().chain(&factories));
    let inherited = value
        .bases
        .iter()
        .filter(|base| has_operations(scope.tree, **base));
    let inherited =
        inherited.map(|&base| scope.path_beside(base, &operations_ident(scope.tree.item(base))));
    let supported = value
        .supports
        .iter()
        .map(|&interface| servants::supertrait_path(scope, interface));
    let supertraits: Vec<TokenStream> = inherited.chain(supported).collect();
    let supertraits = (!supertraits.is_empty()).then(|| quote!(: #(#supertraits)+*));
    quote! {
        #[doc = #documentation]
        pub trait #name #supertraits {
            #(#constructors)*
            #(#methods)*
        }
        #errors
    }
}

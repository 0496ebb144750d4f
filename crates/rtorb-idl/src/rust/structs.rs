//! IDL structs, and the fields, derives and encoding that other types share with them.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::scope::Scope;
use super::{documentation, names, type_codes, values};
use crate::tree::{ItemId, ItemKind, Member, Tree};

/// The struct `id`, its encoding and its TypeCode.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let definition = define(scope, id);
    if scope.layouts.kept_inside_by(id).is_some() {
        return definition;
    }
    let coding = if scope.layouts.has_fixed_layout(id) {
        fixed_layout(scope, id)
    } else {
        encode_and_decode(scope, id)
    };
    let typed = type_codes::typed(scope, id);
    quote!(#definition #coding #typed)
}

/// The members of a struct or exception, or of a valuetype in wire order: those of its bases first.
pub(super) fn members(tree: &Tree, id: ItemId) -> Vec<&Member> {
    match &tree.item(id).kind {
        ItemKind::Struct { members, .. } | ItemKind::Exception { members, .. } => {
            members.iter().collect()
        }
        ItemKind::Valuetype(value) => {
            let concrete = value
                .bases
                .iter()
                .filter(|base| !values::is_abstract(tree, **base));
            let inherited = concrete.flat_map(|&base| members(tree, base));
            let own = value.state.iter().map(|state| &state.member);
            inherited.chain(own).collect()
        }
        _ => Vec::new(),
    }
}

/// The Rust struct with its public fields in IDL order.
pub(super) fn define(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let documentation = documentation::attributes(&item.documentation);
    let name = names::item_ident(item);
    let derives = derives(scope, id);
    let members = members(scope.tree, id);
    if members.is_empty() {
        return quote!(#documentation #derives pub struct #name;);
    }
    let fields = members.iter().map(|member| {
        let documentation = documentation::attributes(&member.documentation);
        let name = field(member);
        let ty = member_type(scope, member);
        quote!(#documentation pub #name: #ty)
    });
    quote!(#documentation #derives pub struct #name { #(#fields,)* })
}

/// The derives of the struct or union `id`. A type with a trait object inside derives only `Clone`.
pub(super) fn derives(scope: Scope<'_>, id: ItemId) -> TokenStream {
    if scope.layouts.kept_inside_by(id).is_some() {
        return quote!(#[derive(Clone)]);
    }
    let copy = scope.layouts.is_copy(id).then(|| quote!(Copy,));
    let eq = scope.layouts.is_eq(id).then(|| quote!(, Eq));
    let hash = scope.layouts.is_hash(id).then(|| quote!(, Hash));
    let default = scope.layouts.has_default(id).then(|| quote!(Default,));
    quote!(#[derive(Clone, #copy Debug, #default PartialEq #eq #hash)])
}

/// `Encode` and `Decode` written out member by member.
pub(super) fn encode_and_decode(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = names::item_ident(scope.tree.item(id));
    let members = members(scope.tree, id);
    let fields: Vec<Ident> = members.iter().map(|member| field(member)).collect();
    let through = |member: &&Member, otherwise: TokenStream| {
        if member.is_optional {
            quote!(::rtorb::codegen::optional)
        } else {
            otherwise
        }
    };
    let encoders = members
        .iter()
        .map(|it| through(it, quote!(::rtorb::codegen::Encode)));
    let decoders = members
        .iter()
        .map(|it| through(it, quote!(::rtorb::codegen::Decode)));
    let lengths = members.iter().map(|member| {
        if member.is_optional {
            return quote!(::rtorb::codegen::optional::BYTES_MIN);
        }
        let ty = scope.owned(&member.ty);
        quote!(<#ty as ::rtorb::codegen::Decode>::BYTES_MIN)
    });
    let encode = quote! {
        #(#encoders::encode(&self.#fields, w)?;)*
        ::core::result::Result::Ok(())
    };
    let bytes_min = quote!(0 #(+ #lengths)*);
    let decode = quote! {
        ::core::result::Result::Ok(Self { #(#fields: #decoders::decode(r)?,)* })
    };
    coding(&name, &encode, &bytes_min, &decode)
}

/// The Rust type of a member.
fn member_type(scope: Scope<'_>, member: &Member) -> TokenStream {
    let ty = scope.owned(&member.ty);
    if member.is_optional {
        quote!(::core::option::Option<#ty>)
    } else {
        ty
    }
}

/// `Encode` and `Decode` of the type `name`: code that writes `self` to `w`, the fewest bytes of an encoded value, and code
/// that reads a value from `r`.
pub(super) fn coding(
    name: &Ident,
    encode: &TokenStream,
    bytes_min: &TokenStream,
    decode: &TokenStream,
) -> TokenStream {
    quote! {
        impl ::rtorb::codegen::Encode for #name {
            fn encode<'a>(
                &'a self,
                w: &mut ::rtorb::codegen::Writer<'a>,
            ) -> ::core::result::Result<(), ::rtorb::codegen::EncodeError> {
                #encode
            }
        }
        impl ::rtorb::codegen::Decode for #name {
            const BYTES_MIN: usize = #bytes_min;
            fn decode(
                r: &mut ::rtorb::codegen::Reader<'_>,
            ) -> ::core::result::Result<Self, ::rtorb::codegen::DecodeError> {
                #decode
            }
        }
    }
}

fn fixed_layout(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = names::item_ident(scope.tree.item(id));
    let members = members(scope.tree, id);
    let fields = members.iter().map(|member| field(member));
    let types = members.iter().map(|member| scope.owned(&member.ty));
    quote!(::rtorb::codegen::fixed_layout!(#name { #(#fields: #types),* });)
}

/// The field of a member.
pub(super) fn field(member: &Member) -> Ident {
    names::value_ident(member)
}

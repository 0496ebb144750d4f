//! IDL unions: an enum with one variant for each member.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::scope::Scope;
use super::{constants, documentation, names, structs, type_codes};
use crate::tree::{ItemId, Type, Union, UnionCase};

/// The union `id`, its encoding and its TypeCode.
pub(super) fn generate(scope: Scope<'_>, id: ItemId, union: &Union) -> TokenStream {
    let item = scope.tree.item(id);
    let shape = Shape::new(scope, union);
    let name = names::item_ident(item);
    let definition = shape.define(&name, &item.documentation, id);
    let discriminator = shape.discriminator(&name);
    if scope.layouts.kept_inside_by(id).is_some() {
        return quote!(#definition #discriminator);
    }
    let selector = &shape.selector;
    let bytes_min = quote!(<#selector as ::rtorb::codegen::Decode>::BYTES_MIN);
    let coding = structs::coding(&name, &shape.encode(), &bytes_min, &shape.decode());
    let typed = type_codes::typed(scope, id);
    quote!(#definition #discriminator #coding #typed)
}

/// The variant for discriminators that select no member.
pub(super) const NO_MEMBER: &str = "NoMember";

/// True if some discriminators select no member.
pub(super) fn has_no_member_variant(union: &Union) -> bool {
    !union.covers_all && !union.cases.iter().any(|case| case.is_default)
}

struct Shape<'t> {
    scope: Scope<'t>,
    union: &'t Union,
    variants: Vec<Variant<'t>>,
    /// The Rust type of the discriminator.
    selector: TokenStream,
}

struct Variant<'t> {
    name: Ident,
    documentation: TokenStream,
    /// The type of its member; `None` for discriminators that select no member.
    member: Option<&'t Type>,
    /// Its labels as expressions, which are patterns as well.
    labels: Vec<TokenStream>,
    /// True if it is for the discriminators that no label has.
    is_default: bool,
}

impl<'t> Variant<'t> {
    fn of_case(scope: Scope<'t>, union: &'t Union, case: &'t UnionCase) -> Self {
        let label = |value| constants::literal(scope, &union.discriminator, value);
        Self {
            name: names::type_ident(&case.member),
            documentation: documentation::attributes(&case.member.documentation),
            member: Some(&case.member.ty),
            labels: case.labels.iter().map(label).collect(),
            is_default: case.is_default,
        }
    }

    fn without_member() -> Self {
        Self {
            name: format_ident!("{NO_MEMBER}"),
            documentation: quote!(#[doc = " A discriminator that selects no member."]),
            member: None,
            labels: Vec::new(),
            is_default: true,
        }
    }

    /// True if the discriminator does not follow from the variant.
    fn keeps_discriminator(&self) -> bool {
        self.is_default || self.labels.len() != 1
    }

    /// `expression` for the member, if there is one.
    fn for_member(&self, expression: TokenStream) -> Option<TokenStream> {
        self.member.map(|_| expression)
    }
}

impl<'t> Shape<'t> {
    fn new(scope: Scope<'t>, union: &'t Union) -> Self {
        let no_member = has_no_member_variant(union).then(Variant::without_member);
        let cases = union.cases.iter();
        let variants = cases.map(|case| Variant::of_case(scope, union, case));
        Self {
            scope,
            union,
            variants: variants.chain(no_member).collect(),
            selector: scope.owned(&union.discriminator),
        }
    }

    fn define(&self, name: &Ident, documentation: &[String], id: ItemId) -> TokenStream {
        let documentation = documentation::attributes(documentation);
        let selector = &self.selector;
        let derives = structs::derives(self.scope, id);
        let variants = self.variants.iter().map(|variant| {
            let Variant {
                name,
                documentation,
                member,
                ..
            } = variant;
            let ty = member.map(|ty| self.scope.owned(ty));
            if variant.keeps_discriminator() {
                let value = variant.for_member(quote!(value: #ty));
                quote!(#documentation #name { discriminator: #selector, #value })
            } else {
                quote!(#documentation #name(#ty))
            }
        });
        quote! {
            #documentation
            #derives
            pub enum #name { #(#variants,)* }
        }
    }

    fn discriminator(&self, name: &Ident) -> TokenStream {
        let selector = &self.selector;
        let arms = self.variants.iter().map(|variant| {
            let Variant { name, labels, .. } = variant;
            if variant.keeps_discriminator() {
                let others = variant.for_member(quote!(..));
                quote!(Self::#name { discriminator, #others } => *discriminator)
            } else {
                quote!(Self::#name(_) => #(#labels)*)
            }
        });
        quote! {
            impl #name {
                /// The value that selects the member.
                pub fn discriminator(&self) -> #selector {
                    match self { #(#arms,)* }
                }
            }
        }
    }

    fn encode(&self) -> TokenStream {
        let encode_value = quote!(::rtorb::codegen::Encode::encode(value, w));
        let arms = self.variants.iter().map(|variant| {
            let Variant { name, labels, .. } = variant;
            if !variant.keeps_discriminator() {
                return quote! {
                    Self::#name(value) => {
                        ::rtorb::codegen::Encode::encode(&#(#labels)*, w)?;
                        #encode_value
                    }
                };
            }
            let refuse_foreign = self.refuse_foreign(variant);
            let value = variant.for_member(quote!(value));
            let then_value = variant.for_member(quote!(?; #encode_value));
            quote! {
                Self::#name { discriminator, #value } => {
                    #refuse_foreign
                    ::rtorb::codegen::Encode::encode(discriminator, w) #then_value
                }
            }
        });
        quote!(match self { #(#arms)* })
    }

    fn decode(&self) -> TokenStream {
        let selector = &self.selector;
        let covers_all = self.union.covers_all;
        let has_arm = |variant: &&Variant<'_>| {
            !variant.is_default || (covers_all && !variant.labels.is_empty())
        };
        let labelled = self.variants.iter().filter(has_arm).map(|variant| {
            let labels = &variant.labels;
            let made = make(variant);
            quote!(#(#labels)|* => #made,)
        });
        // A default behind labels that cover all values is never selected.
        let default = self.variants.iter().find(|variant| variant.is_default);
        let default = default.filter(|_| !covers_all);
        let otherwise = default.map(make).or_else(|| self.never());
        let otherwise = otherwise.map(|made| quote!(_ => #made,));
        quote! {
            let discriminator: #selector = ::rtorb::codegen::Decode::decode(r)?;
            ::core::result::Result::Ok(match discriminator { #(#labelled)* #otherwise })
        }
    }

    /// An arm that rejects other values. A Rust `char` has more values than IDL's `char`, so labels that cover the IDL type
    /// do not cover the match.
    fn never(&self) -> Option<TokenStream> {
        let is_char = matches!(
            self.scope.tree.resolved(&self.union.discriminator),
            Type::Char | Type::WChar
        );
        is_char.then(|| {
            quote!(return ::core::result::Result::Err(::rtorb::codegen::DecodeError::BadText))
        })
    }

    /// Code that rejects a discriminator of another variant than `variant`.
    fn refuse_foreign(&self, variant: &Variant<'_>) -> TokenStream {
        let (labels, not) = if variant.is_default {
            let labelled = self.variants.iter().filter(|variant| !variant.is_default);
            (labelled.flat_map(|variant| &variant.labels).collect(), None)
        } else {
            (variant.labels.iter().collect::<Vec<_>>(), Some(quote!(!)))
        };
        if labels.is_empty() {
            return TokenStream::new();
        }
        quote! {
            if #not ::core::matches!(*discriminator, #(#labels)|*) {
                return ::core::result::Result::Err(::rtorb::codegen::EncodeError::WrongDiscriminator);
            }
        }
    }
}

fn make(variant: &Variant<'_>) -> TokenStream {
    let name = &variant.name;
    let value = quote!(::rtorb::codegen::Decode::decode(r)?);
    if variant.keeps_discriminator() {
        let value = variant.for_member(quote!(value: #value));
        quote!(Self::#name { discriminator, #value })
    } else {
        quote!(Self::#name(#value))
    }
}

//! IDL unions: an enum with one variant for each member.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::scope::Scope;
use super::structs::Coding;
use super::{constants, documentation, names, structs, type_codes, types};
use crate::tree::{ItemId, Type, Union, UnionCase};

/// The union `id`, its encoding and its TypeCode.
pub(super) fn generate(scope: Scope<'_>, id: ItemId, union: &Union) -> TokenStream {
    let item = scope.tree.item(id);
    let shape = Shape::new(scope, union);
    let name = names::item_ident(item);
    let definition = shape.define(&name, &item.documentation, id);
    let discriminator = shape.discriminator(&name);
    if types::kept_inside_by(scope.tree, id).is_some() {
        return quote!(#definition #discriminator);
    }
    let selector = &shape.selector;
    let coding = Coding {
        encode: shape.encode(),
        octets_min: quote!(<#selector as ::rtorb::codegen::Decode>::OCTETS_MIN),
        decode: shape.decode(),
    };
    let coding = coding.generate(&name);
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
    case: &'t UnionCase,
    /// Its labels as expressions, which are patterns as well.
    labels: Vec<TokenStream>,
}

impl Variant<'_> {
    /// True if the discriminator does not follow from the variant.
    fn keeps_discriminator(&self) -> bool {
        self.case.is_default || self.labels.len() != 1
    }
}

impl<'t> Shape<'t> {
    fn new(scope: Scope<'t>, union: &'t Union) -> Self {
        let label = |value| constants::literal(scope, &union.discriminator, value);
        let variants = union.cases.iter().map(|case| Variant {
            name: names::type_ident(&case.member.name),
            case,
            labels: case.labels.iter().map(label).collect(),
        });
        Self {
            scope,
            union,
            variants: variants.collect(),
            selector: scope.owned(&union.discriminator),
        }
    }

    fn define(&self, name: &Ident, documentation: &[String], id: ItemId) -> TokenStream {
        let documentation = documentation::attributes(documentation);
        let selector = &self.selector;
        let derives = structs::derives(self.scope, id);
        let variants = self.variants.iter().map(|variant| {
            let documentation = documentation::attributes(&variant.case.member.documentation);
            let name = &variant.name;
            let ty = self.scope.owned(&variant.case.member.ty);
            if variant.keeps_discriminator() {
                quote!(#documentation #name { discriminator: #selector, value: #ty })
            } else {
                quote!(#documentation #name(#ty))
            }
        });
        let no_member = self.no_member().map(|no_member| {
            quote! {
                /// A discriminator that selects no member.
                #no_member { discriminator: #selector },
            }
        });
        quote! {
            #documentation
            #derives
            pub enum #name { #(#variants,)* #no_member }
        }
    }

    fn discriminator(&self, name: &Ident) -> TokenStream {
        let selector = &self.selector;
        let arms = self.variants.iter().map(|variant| {
            let name = &variant.name;
            let labels = &variant.labels;
            if variant.keeps_discriminator() {
                quote!(Self::#name { discriminator, .. } => *discriminator)
            } else {
                quote!(Self::#name(_) => #(#labels)*)
            }
        });
        let no_member = self
            .no_member()
            .map(|name| quote!(Self::#name { discriminator } => *discriminator,));
        quote! {
            impl #name {
                /// The value that selects the member.
                pub fn discriminator(&self) -> #selector {
                    match self { #(#arms,)* #no_member }
                }
            }
        }
    }

    fn encode(&self) -> TokenStream {
        let arms = self.variants.iter().map(|variant| {
            let name = &variant.name;
            let labels = &variant.labels;
            if variant.keeps_discriminator() {
                let refuse_foreign = self.refuse_foreign(variant);
                quote! {
                    Self::#name { discriminator, value } => {
                        #refuse_foreign
                        ::rtorb::codegen::Encode::encode(discriminator, w)?;
                        ::rtorb::codegen::Encode::encode(value, w)
                    }
                }
            } else {
                quote! {
                    Self::#name(value) => {
                        ::rtorb::codegen::Encode::encode(&#(#labels)*, w)?;
                        ::rtorb::codegen::Encode::encode(value, w)
                    }
                }
            }
        });
        let no_member = self.no_member().map(|name| {
            let refuse_labelled = self.refuse_labelled();
            quote! {
                Self::#name { discriminator } => {
                    #refuse_labelled
                    ::rtorb::codegen::Encode::encode(discriminator, w)
                }
            }
        });
        quote!(match self { #(#arms)* #no_member })
    }

    fn decode(&self) -> TokenStream {
        let selector = &self.selector;
        let labelled = self.labelled().map(|variant| {
            let labels = &variant.labels;
            let made = make(variant);
            quote!(#(#labels)|* => #made,)
        });
        let default = self
            .variants
            .iter()
            .find(|variant| variant.case.is_default)
            .map(make);
        let no_member = self
            .no_member()
            .map(|name| quote!(Self::#name { discriminator }));
        let otherwise = default.or(no_member).or_else(|| self.never());
        let otherwise = otherwise.map(|made| quote!(_ => #made,));
        quote! {
            let discriminator: #selector = ::rtorb::codegen::Decode::decode(r)?;
            ::core::result::Result::Ok(match discriminator { #(#labelled)* #otherwise })
        }
    }

    fn no_member(&self) -> Option<Ident> {
        has_no_member_variant(self.union).then(|| quote::format_ident!("{NO_MEMBER}"))
    }

    fn labelled(&self) -> impl Iterator<Item = &Variant<'t>> {
        self.variants
            .iter()
            .filter(|variant| !variant.case.is_default)
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
        if variant.case.is_default {
            self.refuse_labelled()
        } else {
            let labels = &variant.labels;
            refuse_if(&quote!(!::core::matches!(*discriminator, #(#labels)|*)))
        }
    }

    /// Code that rejects a discriminator that is the label of some variant.
    fn refuse_labelled(&self) -> TokenStream {
        let labels: Vec<_> = self
            .labelled()
            .flat_map(|variant| &variant.labels)
            .collect();
        if labels.is_empty() {
            TokenStream::new()
        } else {
            refuse_if(&quote!(::core::matches!(*discriminator, #(#labels)|*)))
        }
    }
}

fn make(variant: &Variant<'_>) -> TokenStream {
    let name = &variant.name;
    let value = quote!(::rtorb::codegen::Decode::decode(r)?);
    if variant.keeps_discriminator() {
        quote!(Self::#name { discriminator, value: #value })
    } else {
        quote!(Self::#name(#value))
    }
}

fn refuse_if(condition: &TokenStream) -> TokenStream {
    quote! {
        if #condition {
            return ::core::result::Result::Err(::rtorb::codegen::EncodeError::WrongDiscriminator);
        }
    }
}

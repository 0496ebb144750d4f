//! The client side of IDL interfaces: reference types and their methods.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Argument, Call};
use super::scope::Scope;
use super::types::{self, Lending};
use super::{documentation, errors, names, servants, timings, type_codes};
use crate::tree::{ItemId, Tree};

/// The reference type, the servant trait and the error enums of the interface `id`.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let reference = reference(scope, id);
    let servant = servants::generate(scope, id);
    let errors = errors::generate(scope, &operations::own(scope.tree, id));
    quote!(#reference #servant #errors)
}

/// The reference type of an interface. A type that is declared but not defined has no operations.
pub(super) fn reference(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let name = names::item_ident(item);
    let repository_id = &item.repository_id;
    let bases = operations::ancestors(scope.tree, id);
    let ancestors = bases
        .iter()
        .map(|&base| &scope.tree.item(base).repository_id);
    let documentation = documentation::attributes_or(
        &item.documentation,
        &format!(
            "A reference to an object of the IDL interface `{}`.",
            scope.tree.full_name(id)
        ),
    );
    let calls = operations::all(scope.tree, id);
    let mut timed = 0..;
    let methods = calls.iter().map(|call| {
        let place = call.is_timed().then(|| timed.next()).flatten();
        method(scope, call, place)
    });
    let timings = timings::table(scope.tree, id);
    let object = timings::prepared(scope.tree, id);
    let typed = type_codes::typed(scope, id);
    let upcasts = bases.iter().map(|&base| upcast(scope, &name, base));
    quote! {
        #documentation
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct #name(::rtorb::codegen::ObjectRef);
        impl ::rtorb::codegen::Interface for #name {
            const REPOSITORY_ID: &'static str = #repository_id;
            const ANCESTORS: &'static [&'static str] = &[#(#ancestors),*];
            #timings
            fn unchecked_narrow(object: ::rtorb::codegen::ObjectRef) -> Self {
                Self(#object)
            }
            fn as_object(&self) -> &::rtorb::codegen::ObjectRef {
                &self.0
            }
        }
        ::rtorb::codegen::reference_cdr!(#name);
        #typed
        impl #name {
            /// Returns `object` as a reference to this interface. Asks the object if the reference does not state its type.
            ///
            /// # Errors
            /// BAD_PARAM if the object has another interface; the exception of the call if the object cannot be asked.
            pub fn narrow(
                object: &::rtorb::codegen::ObjectRef,
            ) -> ::core::result::Result<Self, ::rtorb::codegen::SystemException> {
                ::rtorb::codegen::narrow(object)
            }
            /// Returns `object` as a reference to this interface without a check. If the object has another interface, calls
            /// return BAD_OPERATION.
            pub fn unchecked_narrow(object: ::rtorb::codegen::ObjectRef) -> Self {
                Self(#object)
            }
            /// The reference without its type.
            pub fn as_object(&self) -> &::rtorb::codegen::ObjectRef {
                &self.0
            }
            #(#methods)*
        }
        #(#upcasts)*
    }
}

fn upcast(scope: Scope<'_>, name: &Ident, base: ItemId) -> TokenStream {
    let base = scope.path(base);
    quote! {
        impl ::core::convert::From<#name> for #base {
            fn from(derived: #name) -> Self {
                <Self as ::rtorb::codegen::Interface>::unchecked_narrow(derived.0)
            }
        }
        impl ::core::convert::From<&#name> for #base {
            fn from(derived: &#name) -> Self {
                <Self as ::rtorb::codegen::Interface>::unchecked_narrow(::core::clone::Clone::clone(&derived.0))
            }
        }
    }
}

/// The method of a call. `place` is its index among the timed calls of the interface, if it is timed.
fn method(scope: Scope<'_>, call: &Call<'_>, place: Option<usize>) -> TokenStream {
    let documentation = documentation::attributes(&call.documentation);
    let signature = call.signature(scope);
    let wire_name = &call.wire_name;
    let arguments = arguments(scope.tree, call);
    let results = results(call);
    let invocation = if call.oneway {
        quote!(invoke_oneway(#wire_name, #arguments))
    } else if call.raises.is_empty() {
        quote!(invoke(#wire_name, #arguments, #results))
    } else {
        let exceptions = exceptions(scope, call);
        quote!(invoke_raising(#wire_name, #arguments, #results, #exceptions))
    };
    let call = timings::timed(place, call, &invocation);
    quote!(#documentation pub #signature { #call })
}

/// The closure that writes the arguments.
fn arguments(tree: &Tree, call: &Call<'_>) -> TokenStream {
    let [w] = names::fresh(["w"], &call.argument_names());
    let encode = call.arguments.iter().map(|argument| {
        let value = lent_value(tree, argument);
        quote!(::rtorb::codegen::Encode::encode(#value, #w))
    });
    in_turn(&w, &encode.collect::<Vec<_>>())
}

/// The argument as a reference, as `Encode` requires.
fn lent_value(tree: &Tree, argument: &Argument<'_>) -> TokenStream {
    let name = &argument.name;
    match types::lending(tree, argument.ty) {
        Lending::ByValue | Lending::Reference => quote!(&#name),
        Lending::Str | Lending::Octets | Lending::Slice(_) | Lending::Borrowed => quote!(#name),
    }
}

/// A closure over `w` that executes the steps in order and stops at an error.
pub(super) fn in_turn(w: &Ident, steps: &[TokenStream]) -> TokenStream {
    match steps {
        [] => quote!(|_| ::core::result::Result::Ok(())),
        [one] => quote!(|#w| #one),
        [first @ .., last] => quote!(|#w| { #(#first?;)* #last }),
    }
}

/// The closure that reads the results.
fn results(call: &Call<'_>) -> TokenStream {
    let decode = quote!(::rtorb::codegen::Decode::decode(r));
    match call.results.len() {
        0 => quote!(|_| ::core::result::Result::Ok(())),
        1 => quote!(|r| #decode),
        several => {
            let each = std::iter::repeat_n(quote!(#decode?), several);
            quote!(|r| ::core::result::Result::Ok((#(#each),*)))
        }
    }
}

/// The closure that reads a user exception. It returns `None` for an undeclared one.
fn exceptions(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
    let error = call.error(scope);
    let arms = errors::variants(scope.tree, &call.raises).into_iter().map(|(variant, id)| {
        let exception = scope.path(id);
        quote! {
            <#exception as ::rtorb::codegen::UserException>::REPOSITORY_ID => {
                ::core::option::Option::Some(#error::#variant(::rtorb::codegen::Decode::decode(r)?))
            }
        }
    });
    let id = format_ident!("id");
    quote! {
        |#id, r| ::core::result::Result::Ok(match #id {
            #(#arms)*
            _ => ::core::option::Option::None,
        })
    }
}

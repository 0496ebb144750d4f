//! Started calls: a type beside each reference, whose methods return calls in flight instead of results.

use proc_macro2::TokenStream;
use quote::quote;

use super::operations::{self, Call};
use super::scope::Scope;
use super::{documentation, interfaces, names};
use crate::tree::{Item, ItemId};

/// The methods of a reference that begin a started call.
pub(super) const START_METHODS: [&str; 2] = ["start", "start_at"];

/// The type that starts the calls of an interface.
pub(super) fn calls_ident(interface: &Item) -> proc_macro2::Ident {
    quote::format_ident!("{}Calls", names::stem(interface))
}

/// The type that starts the calls of the interface `id`, and the methods that return it. Oneways are not among them: they have no
/// reply.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let all = operations::all(scope.tree, id);
    let started = all.iter().filter(|call| !call.oneway);
    let methods: Vec<_> = started.map(|call| method(scope, call)).collect();
    if methods.is_empty() {
        return TokenStream::new();
    }
    let (name, calls) = (names::item_ident(item), calls_ident(item));
    let full_name = scope.tree.full_name(id);
    let about = format!(" Starts calls of an object of the IDL interface `{full_name}`.");
    quote! {
        #[doc = #about]
        pub struct #calls<'o>(::rtorb::codegen::Starter<'o>);
        impl #name {
            /// Starts calls: each method returns at once, with a call whose result is taken later. See `rtorb::Call`.
            pub fn start(&self) -> #calls<'_> {
                #calls(self.0.starter())
            }
            /// Starts calls with this CORBA priority instead of the calling thread's.
            pub fn start_at(&self, priority: ::rtorb::codegen::Priority) -> #calls<'_> {
                #calls(self.0.starter_at(priority))
            }
        }
        impl #calls<'_> { #(#methods)* }
    }
}

fn method(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
    let documentation = documentation::attributes(&call.documentation);
    let head = call.head(scope, &call.method, &quote!(&self));
    let (result, error) = (call.returned(scope), call.error(scope));
    let wire_name = &call.wire_name;
    let arguments = interfaces::arguments(scope, call);
    let results = interfaces::results(call);
    let started = if call.raises.is_empty() {
        quote!(self.0.start(#wire_name, #arguments, #results))
    } else {
        let exceptions = interfaces::exceptions(scope, call);
        quote!(self.0.start_raising(#wire_name, #arguments, #results, #exceptions))
    };
    quote! {
        #documentation
        pub #head -> ::rtorb::codegen::Call<#result, #error> {
            #started
        }
    }
}

//! Asynchronous method invocation as CORBA Messaging has it (CORBA 3, 22.6 to 22.10): `sendc_` and `sendp_` methods beside those of a
//! reference, a trait of reply handlers and a type of pollers. All of it stands on started calls.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Call, RUST_METHODS, TO_STRING};
use super::scope::Scope;
use super::started_calls::START_METHODS;
use super::{documentation, interfaces, names, servants};
use crate::tree::{ItemId, ItemKind, Tree};

/// The trait of reply handlers of interface `id`.
pub(super) fn handler_ident(tree: &Tree, id: ItemId) -> Ident {
    implied_ident(tree, id, "Handler")
}

/// The type of the pollers of interface `id`.
pub(super) fn poller_ident(tree: &Tree, id: ItemId) -> Ident {
    implied_ident(tree, id, "Poller")
}

//= CORBA 3 §22.8
//# Prefixes AMI_ are repeated until the name of a handler is no other identifier.
/// `AmiMotorHandler` for `AMI_MotorHandler`. The prefix is repeated until no declaration of the scope has the name.
fn implied_ident(tree: &Tree, id: ItemId, kind: &str) -> Ident {
    let item = tree.item(id);
    let beside = match item.scope {
        None => &tree.roots,
        Some(scope) => &tree.item(scope).items,
    };
    let mut name = format!("Ami{}{kind}", names::stem(item));
    while (beside.iter()).any(|&other| names::upper_camel(&tree.item(other).name) == name) {
        name.insert_str(0, "Ami");
    }
    format_ident!("{name}")
}

/// A call whose reply a handler is told, with the names of implied IDL.
struct Told<'t> {
    call: Call<'t>,
    /// The method of a handler for results, and that of a poller.
    method: Ident,
    /// The method of a handler for exceptions.
    excep: Ident,
    /// The function of a poller that reads the reply.
    read: Ident,
    /// The function of a poller that tells it to a handler.
    tell: Ident,
}

/// The two-way calls that interface `id` itself declares.
fn told(tree: &Tree, id: ItemId) -> Vec<Told<'_>> {
    let mut taken = BTreeSet::new();
    let own = operations::own(tree, id).into_iter();
    let two_way: Vec<Call<'_>> = own.filter(|call| !call.oneway).collect();
    let methods: Vec<String> = (two_way.iter())
        .map(|call| {
            let (prefix, name) = named(call);
            unique(&mut taken, |ami| {
                format!("{prefix}{}{name}", "ami_".repeat(ami))
            })
        })
        .collect();
    let told = two_way.into_iter().zip(methods).map(|(call, method)| {
        let excep = unique(&mut taken, |ami| {
            format!("{method}{}_excep", "_ami".repeat(ami))
        });
        Told {
            call,
            method: names::ident(&method),
            excep: names::ident(&excep),
            read: format_ident!("__read_{method}"),
            tell: format_ident!("__tell_{method}"),
        }
    });
    told.collect()
}

/// The name of a call in implied IDL: `turn`; `get_` and `speed`; `set_speed`.
fn named(call: &Call<'_>) -> (&'static str, String) {
    let method = call.method.to_string();
    let name = method.strip_prefix("r#").unwrap_or(&method).to_owned();
    let is_get = call.wire_name.starts_with("_get_");
    (if is_get { "get_" } else { "" }, name)
}

/// The first name that is free with so many `ami` in it, which it takes.
fn unique(taken: &mut BTreeSet<String>, wanted: impl Fn(usize) -> String) -> String {
    let mut name = wanted(0);
    let mut ami = 0;
    while !taken.insert(name.clone()) {
        ami += 1;
        name = wanted(ami);
    }
    name
}

/// The handler trait and the pollers of interface `id`, and the methods of its reference that send calls.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let handler = handler(scope, id);
    let poller = poller(scope, id);
    let methods = methods(scope, id);
    quote!(#handler #poller #methods)
}

fn handler(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = handler_ident(scope.tree, id);
    let bases = match &scope.tree.item(id).kind {
        ItemKind::Interface(interface) => interface.bases.iter(),
        _ => return TokenStream::new(),
    };
    let supertraits = servants::supertraits(bases.map(|&base| handler_path(scope, base)).collect());
    let about = format!(
        " Is told the replies to calls of the IDL interface `{}` by `sendc_` methods. See `rtorb::ReplyDriver`.",
        scope.tree.full_name(id)
    );
    let methods = told(scope.tree, id).into_iter().map(|told| {
        let Told {
            call,
            method,
            excep,
            ..
        } = told;
        let documentation = documentation::attributes(&call.documentation);
        let (names, types) = (
            &call.result_names,
            call.results.iter().map(|ty| scope.owned(ty)),
        );
        let error = call.error(scope);
        let why = format!(" Is told why `{}` failed.", call.wire_name);
        quote! {
            #documentation
            fn #method(&self, #(#names: #types),*);
            #[doc = #why]
            fn #excep(&self, excep_holder: #error);
        }
    });
    quote! {
        #[doc = #about]
        pub trait #name: #supertraits { #(#methods)* }
    }
}

fn handler_path(scope: Scope<'_>, id: ItemId) -> TokenStream {
    scope.path_beside(id, &handler_ident(scope.tree, id))
}

/// The pollers for the calls that interface `id` itself declares; nothing if there are none.
fn poller(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let told = told(scope.tree, id);
    if told.is_empty() {
        return TokenStream::new();
    }
    let name = poller_ident(scope.tree, id);
    let about = format!(
        " Asks for the reply to a call of the IDL interface `{}` by a `sendp_` method. See `rtorb::ReplyPoller`.",
        scope.tree.full_name(id)
    );
    let methods = told.iter().map(|told| {
        let Told { call, method, read, .. } = told;
        let telling = telling(scope, told);
        let wire_name = &call.wire_name;
        let (result, error) = (call.returned(scope), call.error(scope));
        let results = interfaces::results(call);
        let exceptions = if call.raises.is_empty() {
            quote!(|_, _| ::core::result::Result::Ok(::core::option::Option::None))
        } else {
            interfaces::exceptions(scope, call)
        };
        quote! {
            pub fn #method(
                &mut self,
                ami_timeout: impl ::core::convert::Into<::core::option::Option<::core::time::Duration>>,
            ) -> ::core::result::Result<#result, #error> {
                self.0.take(#wire_name, ami_timeout.into(), Self::#read)
            }
            pub(crate) fn #read(
                call: &mut ::rtorb::codegen::UntypedCall,
                until: ::rtorb::codegen::Instant,
            ) -> ::core::option::Option<::core::result::Result<#result, #error>> {
                call.wait_until(until, #results, #exceptions)
            }
            #telling
        }
    });
    quote! {
        #[doc = #about]
        #[must_use = "a call whose poller is dropped is given up"]
        #[derive(Debug)]
        pub struct #name(pub(crate) ::rtorb::codegen::ReplyPoller);
        ::rtorb::codegen::poller!(#name);
        impl #name { #(#methods)* }
    }
}

/// The function that tells a reply to a handler.
fn telling(scope: Scope<'_>, told: &Told<'_>) -> TokenStream {
    let Told {
        call,
        method,
        excep,
        read,
        tell,
    } = told;
    let results = &call.result_names;
    let returned = match results.as_slice() {
        [one] => quote!(#one),
        several => quote!((#(#several),*)),
    };
    let [handler] = names::fresh(["handler"], results);
    let of_handler = scope.type_parameter("H");
    let name = handler_ident(scope.tree, call.owner);
    quote! {
        pub(crate) fn #tell<#of_handler: #name>(ended: ::rtorb::codegen::EndedCall<'_>) -> bool {
            ended.tell(Self::#read, |#handler: &#of_handler, result| match result {
                ::core::result::Result::Ok(#returned) => #name::#method(#handler, #(#results),*),
                ::core::result::Result::Err(result) => #name::#excep(#handler, result),
            })
        }
    }
}

//= CORBA 3 §22.6.1
//# A sending operation yields to the operations of the interface and its bases.
/// The methods of the reference of interface `id` that send its calls, inherited ones too. They yield to all operations.
fn methods(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let tree = scope.tree;
    let all = operations::all(tree, id);
    let methods = all.iter().map(|call| call.method.to_string());
    let of_references = RUST_METHODS
        .into_iter()
        .chain(START_METHODS)
        .chain([TO_STRING]);
    let mut taken: BTreeSet<String> = methods.chain(of_references.map(str::to_owned)).collect();
    let owners = operations::ancestors(tree, id).into_iter().chain([id]);
    let told = owners.flat_map(|owner| told(tree, owner));
    let methods: Vec<_> = told.map(|told| sending(scope, &told, &mut taken)).collect();
    if methods.is_empty() {
        return TokenStream::new();
    }
    let name = names::item_ident(tree.item(id));
    quote!(impl #name { #(#methods)* })
}

/// The two methods that send a call.
fn sending(scope: Scope<'_>, told: &Told<'_>, taken: &mut BTreeSet<String>) -> TokenStream {
    let Told { call, tell, .. } = told;
    let (prefix, name) = named(call);
    let [sendc, sendp] = ["sendc_", "sendp_"].map(|sends| {
        let sending = unique(taken, |ami| {
            format!("{sends}{}{prefix}{name}", "ami_".repeat(ami))
        });
        names::ident(&sending)
    });
    let arguments = call.argument_names();
    let [handler] = names::fresh(["ami_handler"], &arguments);
    let trait_path = handler_path(scope, call.owner);
    let poller = scope.path_beside(call.owner, &poller_ident(scope.tree, call.owner));
    let of_handler = scope.type_parameter("H");
    let receiver = quote!(&self, #handler: &::rtorb::codegen::Arc<#of_handler>);
    let with_handler = call.head(scope, &quote!(#sendc<#of_handler: #trait_path>), &receiver);
    let polled = call.head(scope, &sendp, &quote!(&self));
    let (wire_name, started) = (&call.wire_name, &call.method);
    let by_handler = format!(" Sends `{wire_name}`, whose reply the handler is told.");
    let by_poller = format!(" Sends `{wire_name}`, whose reply the poller asks for.");
    quote! {
        #[doc = #by_handler]
        pub #with_handler -> ::core::result::Result<(), ::rtorb::codegen::SystemException> {
            self.#sendp(#(#arguments),*).0.hand_to(#handler, #poller::#tell::<#of_handler>)
        }
        #[doc = #by_poller]
        pub #polled -> #poller {
            #poller(::rtorb::codegen::ReplyPoller::new(&self.0, #wire_name, self.start().#started(#(#arguments),*)))
        }
    }
}

//! The client side of IDL interfaces: reference types and their methods.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Argument, Call};
use super::scope::Scope;
use super::types::{self, Lending};
use super::{
    ami, async_servants, deferred_servants, documentation, errors, names, servants, started_calls,
    timings, type_codes,
};
use crate::tree::{ItemId, Tree, Type};

/// The reference type, the servant trait and the error enums of the interface `id`.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let reference = reference(scope, id);
    let servant = servants::generate(scope, id);
    let deferred = scope
        .additions
        .defers_replies()
        .then(|| deferred_servants::generate(scope, id));
    let tasks = scope
        .additions
        .has_async_servants
        .then(|| async_servants::generate(scope, id));
    let ami = (scope.additions.has_ami).then(|| ami::generate(scope, id));
    let errors = errors::generate(scope, &operations::own(scope.tree, id));
    quote!(#reference #servant #deferred #tasks #ami #errors)
}

/// The reference type of an interface. A type that is declared but not defined has no operations.
pub(super) fn reference(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let name = names::item_ident(item);
    let documentation = documentation::attributes_or(
        &item.documentation,
        &format!(
            "A reference to an object of the IDL interface `{}`.",
            scope.tree.full_name(id)
        ),
    );
    let repository_id = &item.repository_id;
    let bases = operations::ancestors(scope.tree, id);
    let ancestors = bases
        .iter()
        .map(|&base| &scope.tree.item(base).repository_id);
    let timings = timings::table(scope.tree, id);
    let object = timings::prepared(scope.tree, id);
    let is_abstract = types::is_abstract_interface(scope.tree, id).then(|| quote!(@abstract));
    let typed = type_codes::typed(scope, id);
    let methods = methods(scope, id);
    let started = scope
        .additions
        .starts_calls()
        .then(|| started_calls::generate(scope, id));
    let base_paths = bases.iter().map(|&base| scope.path(base));
    let upcasts =
        (!bases.is_empty()).then(|| quote!(::rtorb::codegen::upcasts!(#name: #(#base_paths),*);));
    quote! {
        #documentation
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct #name(::rtorb::codegen::ObjectRef);
        impl ::rtorb::codegen::Interface for #name {
            type Object = ::rtorb::codegen::ObjectRef;
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
        ::rtorb::codegen::reference!(#is_abstract #name);
        ::rtorb::codegen::policies!(#name);
        #typed
        #methods
        #started
        #upcasts
    }
}

/// The methods of a reference: those of the interface itself, and for each base an `impl` that names it.
fn methods(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = names::item_ident(scope.tree.item(id));
    let mut inherited = TokenStream::new();
    let mut timed = 0;
    for base in operations::ancestors(scope.tree, id) {
        let methods = methods_of(scope, id, base, &mut timed);
        if methods.is_empty() {
            continue;
        }
        let from = format!(" The operations of `{}`.", scope.tree.full_name(base));
        inherited.extend(quote!(#[doc = #from] impl #name { #(#methods)* }));
    }
    let own = methods_of(scope, id, id, &mut timed);
    let own = (!own.is_empty()).then(|| quote!(impl #name { #(#own)* }));
    quote!(#own #inherited)
}

/// The methods of the interface `id` for the operations that `owner` declares. `timed` counts the timed operations of `id`.
fn methods_of(scope: Scope<'_>, id: ItemId, owner: ItemId, timed: &mut usize) -> Vec<TokenStream> {
    let own = operations::own(scope.tree, owner);
    let methods = own.iter().map(|call| {
        let place = call.is_timed().then_some(*timed);
        *timed += usize::from(call.is_timed());
        method(scope, id, call, place)
    });
    methods.collect()
}

/// The method of the interface `id` for a call. `place` is its index among the timed calls of the interface, if it is timed.
///
/// The marshalling of a base is written once, in a function that the methods of all derived interfaces call.
fn method(scope: Scope<'_>, id: ItemId, call: &Call<'_>, place: Option<usize>) -> TokenStream {
    let documentation = documentation::attributes(&call.documentation);
    let signature = call.signature(scope);
    let mut shared = TokenStream::new();
    let mut invocation = invocation(scope, call, &quote!(self.0));
    if scope.bases.contains(&call.owner) {
        if call.owner == id {
            let (signature, object) = call.shared_signature(scope);
            let invocation = self::invocation(scope, call, &quote!(#object));
            shared = quote!(pub(crate) #signature { #invocation });
        }
        let owner = scope.path(call.owner);
        let function = call.shared_method();
        let arguments = call.argument_names();
        invocation = quote!(#owner::#function(&self.0, #(#arguments),*));
    }
    let name = names::item_ident(scope.tree.item(id));
    let body = timings::timed(&name, place, call, &invocation);
    quote!(#documentation pub #signature { #body } #shared)
}

/// The invocation of the untyped reference `object`.
fn invocation(scope: Scope<'_>, call: &Call<'_>, object: &TokenStream) -> TokenStream {
    let wire_name = &call.wire_name;
    let arguments = arguments(scope, call);
    let results = results(call);
    let servant_call = servant_call(scope, call, object);
    let invocation = if call.oneway {
        quote!(#object.invoke_oneway(#wire_name, #arguments))
    } else if call.raises.is_empty() {
        quote!(#object.invoke(#wire_name, #arguments, #results))
    } else {
        let exceptions = exceptions(scope, call);
        quote!(#object.invoke_raising(#wire_name, #arguments, #results, #exceptions))
    };
    quote!(#servant_call #invocation)
}

/// Calls the servant by its trait if it is one of the same ORB and nothing needs a request.
///
/// A oneway must not take the caller's time, and timed operations are counted on their way. Marshalling changes what is not plain.
fn servant_call(scope: Scope<'_>, call: &Call<'_>, object: &TokenStream) -> TokenStream {
    let is_plain = |ty: &Type| scope.layouts.is_plain(ty);
    let is_plain_call = call.arguments.iter().all(|argument| is_plain(argument.ty))
        && call.results.iter().all(|ty| is_plain(ty))
        && call.raises.iter().all(|&id| is_plain(&Type::Named(id)));
    if call.oneway || call.is_timed() || call.context.is_some() || !is_plain_call {
        return TokenStream::new();
    }
    let arguments = call.argument_names();
    let [servant, done] = names::fresh(["servant", "done"], &arguments);
    let declaring = servants::trait_path(scope, call.owner);
    let method = &call.method;
    quote! {
        if let ::core::option::Option::Some(#done) = #object.call_servant(
            |#servant: &dyn #declaring| #declaring::#method(#servant, #(#arguments),*),
        ) {
            return #done;
        }
    }
}

/// The closure that writes the arguments. Those with text tell their positions when a character cannot be sent.
pub(super) fn arguments(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
    let [w] = names::fresh(["w"], &call.argument_names());
    let encode = call
        .arguments
        .iter()
        .zip(1u32..)
        .map(|(argument, position)| {
            let value = lent_value(scope.tree, argument);
            if scope.layouts.has_text(argument.ty) {
                let position = u8::try_from(position).unwrap_or(u8::MAX);
                quote!(::rtorb::codegen::encode_argument(#position, #value, #w))
            } else {
                quote!(::rtorb::codegen::Encode::encode(#value, #w))
            }
        });
    let context = call
        .context
        .iter()
        .map(|(name, patterns)| quote!(#name.encode_matching(&[#(#patterns),*], #w)));
    let checked = call.check_message(&quote!(#w));
    in_turn(
        &w,
        &encode.chain(context).chain(checked).collect::<Vec<_>>(),
    )
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
pub(super) fn results(call: &Call<'_>) -> TokenStream {
    let decode = quote!(::rtorb::codegen::Decode::decode(r));
    if let Some(check) = call.check_message(&quote!(r)) {
        let each = std::iter::repeat_n(quote!(#decode?), call.results.len());
        let value = match call.results.len() {
            1 => quote!(#(#each)*),
            _ => quote!((#(#each),*)),
        };
        return quote!(|r| { #check?; ::core::result::Result::Ok(#value) });
    }
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
pub(super) fn exceptions(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
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
    let raised = quote! {
        ::core::result::Result::Ok(match #id {
            #(#arms)*
            _ => ::core::option::Option::None,
        })
    };
    match call.check_message(&quote!(r)) {
        Some(check) => quote!(|#id, r| { #check?; #raised }),
        None => quote!(|#id, r| #raised),
    }
}

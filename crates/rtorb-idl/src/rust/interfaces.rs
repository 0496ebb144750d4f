//! The client side of IDL interfaces: reference types and their methods.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Argument, Call};
use super::scope::Scope;
use super::types::{self, Lending};
use super::{documentation, errors, inheritance, names, servants, timings, type_codes};
use crate::tree::{ItemId, Tree, Type};

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
    let timings = timings::table(scope.tree, id);
    let object = timings::prepared(scope.tree, id);
    let content = if inheritance::is_plain(scope, id) {
        object
    } else {
        quote!(::rtorb::codegen::Content::around(#object))
    };
    let inner = inheritance::object(scope, id);
    let inner = if inheritance::is_plain(scope, id) {
        quote!(&#inner)
    } else {
        inner
    };
    let is_abstract = types::is_abstract_interface(scope.tree, id).then(|| quote!(@abstract));
    let typed = type_codes::typed(scope, id);
    let definition = definition(scope, id);
    let methods = methods(scope, id);
    let base_paths = bases.iter().map(|&base| scope.path(base));
    let upcasts =
        (!bases.is_empty()).then(|| quote!(::rtorb::codegen::upcasts!(#name: #(#base_paths),*);));
    let operations = scope.inheritance.is_base(id).then(|| {
        let own = operations::own(scope.tree, id);
        let names = own.iter().map(|call| &call.wire_name);
        quote!(const OPERATIONS: &'static [&'static str] = &[#(#names),*];)
    });
    quote! {
        #definition
        impl ::rtorb::codegen::Interface for #name {
            const REPOSITORY_ID: &'static str = #repository_id;
            const ANCESTORS: &'static [&'static str] = &[#(#ancestors),*];
            #operations
            #timings
            fn unchecked_narrow(object: ::rtorb::codegen::ObjectRef) -> Self {
                Self(#content)
            }
            fn as_object(&self) -> &::rtorb::codegen::ObjectRef {
                #inner
            }
        }
        ::rtorb::codegen::reference!(#is_abstract #name);
        #typed
        #methods
        #upcasts
    }
}

/// The struct of a reference type, and its place around and inside other reference types.
fn definition(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let name = names::item_ident(item);
    let mut documentation = documentation::attributes_or(
        &item.documentation,
        &format!(
            "A reference to an object of the IDL interface `{}`.",
            scope.tree.full_name(id)
        ),
    );
    let bases = operations::ancestors(scope.tree, id);
    if !bases.is_empty() {
        let bases = bases.iter().rev().map(|&base| scope.tree.full_name(base));
        let bases = bases.collect::<Vec<_>>().join("`, `");
        let inherited = format!(" It also has the methods of `{bases}`.");
        documentation.extend(quote!(#[doc = ""] #[doc = #inherited]));
    }
    let content = inheritance::content(scope, id);
    let derives = quote!(#[derive(Clone, Debug, PartialEq, Eq, Hash)]);
    if scope.inheritance.is_generic(id) {
        let inner = scope.type_parameter("B");
        return quote! {
            #documentation
            #derives
            pub struct #name<#inner = #content>(#inner);
            ::rtorb::codegen::base!(#name<#inner>);
        };
    }
    let base = (scope.inheritance.is_base(id)).then(|| quote!(::rtorb::codegen::base!(#name);));
    let inherits = (!operations::ancestors(scope.tree, id).is_empty())
        .then(|| quote!(::rtorb::codegen::inherits!(#name: #content);));
    quote! {
        #documentation
        #derives
        pub struct #name(#content);
        #base
        #inherits
    }
}

/// The methods of a reference: those of the operations that the interface declares, and of inherited ones that are timed,
/// because calls count for the interface of the reference. Others are methods of the bases.
fn methods(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let mut timed = 0..;
    let methods: Vec<_> = operations::all(scope.tree, id)
        .iter()
        .filter_map(|call| {
            let place = call.is_timed().then(|| timed.next()).flatten();
            let is_own = call.owner == id || place.is_some();
            is_own.then(|| method(scope, id, call, place))
        })
        .collect();
    if methods.is_empty() {
        return TokenStream::new();
    }
    let name = names::item_ident(scope.tree.item(id));
    if scope.inheritance.is_generic(id) {
        let inner = scope.type_parameter("B");
        quote!(impl<#inner: ::rtorb::codegen::Content> #name<#inner> { #(#methods)* })
    } else {
        quote!(impl #name { #(#methods)* })
    }
}

/// The method of a call to the interface `id`. `place` is its index among the timed calls of the interface, if it is timed.
fn method(scope: Scope<'_>, id: ItemId, call: &Call<'_>, place: Option<usize>) -> TokenStream {
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
    let name = names::item_ident(scope.tree.item(id));
    let object = inheritance::object(scope, id);
    let servant_call = servant_call(scope, id, call);
    let call = timings::timed(&name, &object, place, call, &invocation);
    quote!(#documentation pub #signature { #servant_call #call })
}

/// Calls the servant by its trait if it is one of the same ORB and nothing needs a request.
///
/// A oneway must not take the caller's time, and timed operations are counted on their way. Marshalling changes what is not plain.
fn servant_call(scope: Scope<'_>, id: ItemId, call: &Call<'_>) -> TokenStream {
    let is_plain = |ty: &Type| scope.layouts.is_plain(ty);
    let is_plain_call = call.arguments.iter().all(|argument| is_plain(argument.ty))
        && call.results.iter().all(|ty| is_plain(ty))
        && call.raises.iter().all(|&id| is_plain(&Type::Named(id)));
    if call.oneway || call.is_timed() || call.context.is_some() || !is_plain_call {
        return TokenStream::new();
    }
    let arguments = call.argument_names();
    let [servant, done] = names::fresh(["servant", "done"], &arguments);
    let [here, declaring] = [id, call.owner].map(|id| servants::trait_path(scope, id));
    let method = &call.method;
    let object = inheritance::object(scope, id);
    quote! {
        if let ::core::option::Option::Some(#done) = #object.call_servant(
            |#servant: &dyn #here| #declaring::#method(#servant, #(#arguments),*),
        ) {
            return #done;
        }
    }
}

/// The closure that writes the arguments.
fn arguments(tree: &Tree, call: &Call<'_>) -> TokenStream {
    let [w] = names::fresh(["w"], &call.argument_names());
    let encode = call.arguments.iter().map(|argument| {
        let value = lent_value(tree, argument);
        quote!(::rtorb::codegen::Encode::encode(#value, #w))
    });
    let context = call
        .context
        .iter()
        .map(|(name, patterns)| quote!(#name.encode_matching(&[#(#patterns),*], #w)));
    in_turn(&w, &encode.chain(context).collect::<Vec<_>>())
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

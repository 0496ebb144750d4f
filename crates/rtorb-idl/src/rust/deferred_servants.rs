//! Servants that defer their replies: a second servant trait for each interface, whose operations get responders.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Call};
use super::scope::Scope;
use super::servants::{self, Skeleton};
use super::{documentation, names};
use crate::tree::{Item, ItemId, ItemKind};

/// The trait of servants that defer their replies.
pub(super) fn trait_ident(interface: &Item) -> Ident {
    format_ident!("{}DeferredServant", names::stem(interface))
}

/// The trait of servants of the interface `id` that defer their replies, its implementation for `Arc`, and the dispatch of requests.
///
/// A oneway has no reply: it is as in the ordinary trait.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = trait_ident(scope.tree.item(id));
    let bases = match &scope.tree.item(id).kind {
        ItemKind::Interface(interface) => interface.bases.iter(),
        _ => return TokenStream::new(),
    };
    let supertraits = servants::supertraits(bases.map(|&base| trait_path(scope, base)).collect());
    let own = operations::own(scope.tree, id);
    let declared = own.iter().map(|call| {
        let documentation = documentation::attributes(&call.documentation);
        let signature = signature(scope, call);
        quote!(#documentation #signature;)
    });
    let full_name = scope.tree.full_name(id);
    let about = format!(
        " Implements objects of the IDL interface `{full_name}` whose replies are deferred. See `rtorb::Deferring`."
    );
    let servant = scope.type_parameter("S");
    let passed_on = own.iter().map(|call| {
        let signature = signature(scope, call);
        let (method, arguments) = (&call.method, call.argument_names());
        let responder = (!call.oneway).then(|| responder(call)).into_iter();
        quote!(#signature { <#servant as #name>::#method(self, #(#responder,)* #(#arguments),*) })
    });
    let skeleton = Skeleton {
        servant: &quote!(::rtorb::codegen::Deferring<#servant>),
        parameters: &quote!(#servant: #name),
        traits: &TokenStream::new(),
    };
    let dispatch = skeleton.implement(scope, id, |call, taken| serve(scope, call, taken));
    quote! {
        #[doc = #about]
        pub trait #name: #supertraits { #(#declared)* }
        impl<#servant: #name + ?::core::marker::Sized> #name for ::rtorb::codegen::Arc<#servant> { #(#passed_on)* }
        #dispatch
    }
}

fn trait_path(scope: Scope<'_>, id: ItemId) -> TokenStream {
    scope.path_beside(id, &trait_ident(scope.tree.item(id)))
}

/// The parameter for the responder.
pub(super) fn responder(call: &Call<'_>) -> Ident {
    let [responder] = names::fresh(["responder"], &call.argument_names());
    responder
}

/// `fn name(&self, responder: Responder<..., ...>, ...)`
pub(super) fn signature(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
    if call.oneway {
        return call.signature(scope);
    }
    let (method, responder) = (&call.method, responder(call));
    let parameters = parameters(scope, call);
    let (result, error) = (call.returned(scope), call.error(scope));
    quote! {
        fn #method(
            &self,
            #responder: ::rtorb::codegen::Responder<#result, #error>,
            #parameters
        )
    }
}

/// The parameters of an operation, as values.
pub(super) fn parameters(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
    let names = call.argument_names();
    let types = call.arguments.iter().map(|it| scope.owned(it.ty));
    let context = call.context.iter();
    let types = types.chain(context.map(|_| quote!(::rtorb::codegen::ContextValues)));
    quote!(#(#names: #types),*)
}

/// Reads the arguments, and calls the servant with a responder.
fn serve(scope: Scope<'_>, call: &Call<'_>, taken: &[Ident]) -> TokenStream {
    let [servant, server_call, result] = names::fresh(["servant", "call", "result"], taken);
    let servant_trait = trait_path(scope, call.owner);
    if call.oneway {
        return servants::serve(scope, call, taken, &servant_trait, &quote!(&#servant.0));
    }
    let (method, names) = (&call.method, call.argument_names());
    let read = call.arguments.iter().map(|argument| {
        let (name, ty) = (&argument.name, scope.owned(argument.ty));
        quote!(let #name: #ty = #server_call.argument()?;)
    });
    let read_context = servants::read_context(call, &server_call);
    let checked = call.check_message(&quote!(#server_call.arguments()));
    let checked = checked.map(|check| quote!(#check?;));
    let executed = call.is_timed().then(|| quote!(#server_call.executed();));
    let responder = responder(call);
    let (returned, error) = (call.returned(scope), call.error(scope));
    let answer = servants::handle_result(scope, call, taken);
    quote! {
        #checked
        #(#read)*
        #read_context
        let #responder = ::rtorb::codegen::DeferReply::defer::<#returned, #error>(
            #server_call,
            |#result, #server_call| { #answer },
        )?;
        #servant_trait::#method(&#servant.0, #responder, #(#names),*);
        #executed
        ::core::result::Result::Ok(())
    }
}

//! Servants whose operations are `async`: a third servant trait for each interface, on that of deferred replies.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Call};
use super::scope::Scope;
use super::{deferred_servants, documentation, names, servants};
use crate::tree::{Item, ItemId, ItemKind};

/// The trait of servants whose operations are `async`.
pub(super) fn trait_ident(interface: &Item) -> Ident {
    format_ident!("{}AsyncServant", names::stem(interface))
}

/// The trait of servants of the interface `id` whose operations are `async`, and the servant that makes their calls tasks.
///
/// A oneway has no reply: it is as in the ordinary trait.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let ItemKind::Interface(interface) = &item.kind else {
        return TokenStream::new();
    };
    let name = trait_ident(item);
    let bases = interface.bases.iter();
    let bases = bases.map(|&base| scope.path_beside(base, &trait_ident(scope.tree.item(base))));
    let supertraits = servants::supertraits(bases.collect());
    let own = operations::own(scope.tree, id);
    let declared = own.iter().map(|call| declaration(scope, call));
    let full_name = scope.tree.full_name(id);
    let about = format!(
        " Implements objects of the IDL interface `{full_name}` by tasks. See `rtorb::TaskServant`."
    );
    let [servant, executor] = ["S", "X"].map(|name| scope.type_parameter(name));
    let started = own.iter().map(|call| start(scope, call, &servant, &name));
    let deferred = deferred_servants::trait_ident(item);
    quote! {
        #[doc = #about]
        pub trait #name: #supertraits { #(#declared)* }
        impl<#servant: #name, #executor: ::rtorb::codegen::Executor> #deferred
            for ::rtorb::codegen::TaskServant<#servant, #executor>
        {
            #(#started)*
        }
    }
}

/// `fn name(&self, ...) -> impl Future<Output = Result<..., ...>> + Send;`, which a servant may implement by an `async fn`.
fn declaration(scope: Scope<'_>, call: &Call<'_>) -> TokenStream {
    if call.oneway {
        return call.declaration(scope);
    }
    let documentation = documentation::attributes(&call.documentation);
    let (method, result) = (&call.method, call.result(scope));
    let parameters = deferred_servants::parameters(scope, call);
    quote! {
        #documentation
        fn #method(&self, #parameters) -> impl ::core::future::Future<Output = #result> + ::core::marker::Send;
    }
}

/// The method of the deferred servant, which makes the call a task.
fn start(scope: Scope<'_>, call: &Call<'_>, servant: &Ident, name: &Ident) -> TokenStream {
    let signature = deferred_servants::signature(scope, call);
    let (method, arguments) = (&call.method, call.argument_names());
    if call.oneway {
        return quote!(#signature { <#servant as #name>::#method(self.servant(), #(#arguments),*) });
    }
    let responder = deferred_servants::responder(call);
    let [shared] = names::fresh(["servant"], &arguments);
    quote! {
        #signature {
            self.spawn(#responder, move |#shared| async move {
                <#servant as #name>::#method(&*#shared, #(#arguments),*).await
            });
        }
    }
}

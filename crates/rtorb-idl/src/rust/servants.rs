//! The server side of IDL interfaces: servant traits and dispatch.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::operations::{self, Argument, Call};
use super::scope::Scope;
use super::types::{self, Lending};
use super::{errors, interfaces, names, timings};
use crate::tree::{ItemId, ItemKind, Tree};

/// The servant trait of interface `id`, its implementation for `Arc`, and the dispatch of requests to it.
pub(super) fn generate(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let declared = declare(scope, id);
    let shared = serve_behind_arc(scope, id);
    let dispatch = dispatch(scope, id);
    quote!(#declared #shared #dispatch)
}

/// The servant trait of `id` as named from `scope`.
pub(super) fn trait_path(scope: Scope<'_>, id: ItemId) -> TokenStream {
    scope.path_beside(id, &names::servant_ident(scope.tree.item(id)))
}

/// The trait of interface `id` on which others build: its servant trait, or the one trait of a local interface.
pub(super) fn supertrait_path(scope: Scope<'_>, id: ItemId) -> TokenStream {
    if types::is_local_interface(scope.tree, id) {
        scope.path(id)
    } else {
        trait_path(scope, id)
    }
}

/// The traits that the trait of interface `id` builds on.
pub(super) fn supertraits(bases: Vec<TokenStream>) -> TokenStream {
    if bases.is_empty() {
        quote!(::core::marker::Send + ::core::marker::Sync + 'static)
    } else {
        quote!(#(#bases)+*)
    }
}

fn declare(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = names::servant_ident(scope.tree.item(id));
    let bases = match &scope.tree.item(id).kind {
        ItemKind::Interface(interface) => interface
            .bases
            .iter()
            .map(|&base| trait_path(scope, base))
            .collect(),
        _ => Vec::new(),
    };
    let supertraits = supertraits(bases);
    let methods = operations::own(scope.tree, id)
        .into_iter()
        .map(|call| call.declaration(scope));
    let documentation = format!(
        " Implements objects of the IDL interface `{}`.",
        scope.tree.full_name(id)
    );
    quote! {
        #[doc = #documentation]
        pub trait #name: #supertraits { #(#methods)* }
    }
}

fn serve_behind_arc(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = names::servant_ident(scope.tree.item(id));
    let servant = scope.type_parameter("S");
    let methods = operations::own(scope.tree, id).into_iter().map(|call| {
        let signature = call.signature(scope);
        let method = &call.method;
        let arguments = call.argument_names();
        quote!(#signature { <#servant as #name>::#method(self, #(#arguments),*) })
    });
    quote! {
        impl<#servant: #name + ?::core::marker::Sized> #name for ::rtorb::codegen::Arc<#servant> { #(#methods)* }
    }
}

fn dispatch(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let servant_trait = names::servant_ident(scope.tree.item(id));
    let servant = scope.type_parameter("S");
    let traits = [id]
        .into_iter()
        .chain(operations::ancestors(scope.tree, id));
    let traits = traits.map(|id| trait_path(scope, id));
    let [argument] = names::fresh(["servant"], &taken(scope.tree, id));
    let traits = quote! {
        fn traits(
            #argument: &::rtorb::codegen::Arc<#servant>,
        ) -> ::core::option::Option<::rtorb::codegen::ServantTraits> {
            ::core::option::Option::Some(::rtorb::codegen::ServantTraits::new([
                #(::rtorb::codegen::ServantTraits::one::<dyn #traits>(#argument.clone())),*
            ]))
        }
    };
    let served = quote!(#servant);
    let skeleton = Skeleton {
        servant: &served,
        parameters: &quote!(#servant: #servant_trait),
        traits: &traits,
    };
    skeleton.implement(scope, id, |call, taken| {
        let [servant] = names::fresh(["servant"], taken);
        serve(
            scope,
            call,
            taken,
            &trait_path(scope, call.owner),
            &quote!(#servant),
        )
    })
}

/// The parameters of the operations that interface `id` declares: no local variable of its skeleton has such a name.
fn taken(tree: &Tree, id: ItemId) -> Vec<Ident> {
    let own = operations::own(tree, id);
    own.iter().flat_map(Call::argument_names).collect()
}

/// An implementation of `ServedBy`.
pub(super) struct Skeleton<'s> {
    /// The type of the servants.
    pub(super) servant: &'s TokenStream,
    /// The type parameters, with their bounds.
    pub(super) parameters: &'s TokenStream,
    /// Its function `traits`, if it has one.
    pub(super) traits: &'s TokenStream,
}

impl Skeleton<'_> {
    /// The skeleton of interface `id`. `serve` generates what each operation of its own does, without local variables that have one of
    /// the given names.
    pub(super) fn implement(
        &self,
        scope: Scope<'_>,
        id: ItemId,
        serve: impl Fn(&Call<'_>, &[Ident]) -> TokenStream,
    ) -> TokenStream {
        let Self {
            servant: served,
            parameters,
            traits,
        } = self;
        let interface = names::item_ident(scope.tree.item(id));
        let own = operations::own(scope.tree, id);
        let taken = taken(scope.tree, id);
        let locals = names::fresh(["servant", "operation", "call"], &taken);
        let [servant, operation, call] = &locals;
        let arms = own.iter().enumerate().map(|(number, call)| {
            let number = Literal::usize_unsuffixed(number);
            let body = serve(call, &taken);
            quote!(#number => { #body })
        });
        let bases = with_operations(scope.tree, id);
        let inherited = inherited_arms(scope, &bases, own.len(), served, &locals);
        let bases = bases
            .iter()
            .flat_map(|&base| operations::own(scope.tree, base));
        let dispatched: Vec<Call<'_>> = own.iter().cloned().chain(bases).collect();
        let table = table(&dispatched);
        let finder = timings::finder(scope.tree, id, &dispatched);
        quote! {
            impl<#parameters> ::rtorb::codegen::ServedBy<#served> for #interface {
                fn find_operation(name: &[u8]) -> ::core::option::Option<usize> {
                    #table
                }
                #finder
                #traits
                fn dispatch(
                    #servant: &#served,
                    #operation: usize,
                    #call: &mut ::rtorb::codegen::ServerCall<'_>,
                ) -> ::core::result::Result<(), ::rtorb::codegen::SystemException> {
                    match #operation {
                        #(#arms)*
                        #inherited
                        _ => ::core::result::Result::Err(::rtorb::codegen::unknown_operation()),
                    }
                }
            }
        }
    }
}

/// The bases of the interface `id` that declare operations, direct or not, each once.
fn with_operations(tree: &Tree, id: ItemId) -> Vec<ItemId> {
    let mut bases = operations::ancestors(tree, id);
    bases.retain(|&base| !operations::own(tree, base).is_empty());
    bases
}

/// The arms for inherited operations, whose numbers begin at `first`. They call the dispatch of the base, where the numbers of
/// its own operations begin at 0.
fn inherited_arms(
    scope: Scope<'_>,
    bases: &[ItemId],
    first: usize,
    served: &TokenStream,
    [servant, operation, call]: &[Ident; 3],
) -> TokenStream {
    let mut first = first;
    let arms = bases.iter().map(|&base| {
        let next = first + operations::own(scope.tree, base).len();
        let [from, to] = [first, next - 1].map(Literal::usize_unsuffixed);
        let is_first = first == 0;
        first = next;
        let path = scope.path(base);
        let number = if is_first {
            quote!(#operation)
        } else {
            quote!(#operation - #from)
        };
        quote! {
            #from..=#to => <#path as ::rtorb::codegen::ServedBy<#served>>::dispatch(
                #servant, #number, #call,
            ),
        }
    });
    arms.collect()
}

/// Looks the operation up in a perfect hash table. A seed alone gives a few names slots of their own; more names are displaced
/// by buckets.
fn table(dispatched: &[Call<'_>]) -> TokenStream {
    let names = dispatched.iter().map(|call| &call.wire_name);
    let count = dispatched.len();
    let buckets = match count {
        ..=BY_SEED_MAX => 1,
        many => (many / NAMES_PER_BUCKET).next_power_of_two(),
    };
    let slots = (SLOTS_PER_NAME * count.max(1)).next_power_of_two();
    let [count, buckets, slots] = [count, buckets, slots].map(Literal::usize_unsuffixed);
    quote! {
        static TABLE: ::rtorb::codegen::OperationTable<#count, #buckets, #slots> =
            ::rtorb::codegen::OperationTable::new([#(#names),*]);
        TABLE.find(name)
    }
}

const SLOTS_PER_NAME: usize = 4;
const NAMES_PER_BUCKET: usize = 4;
/// The compiler finds a seed for so many names in a few attempts.
const BY_SEED_MAX: usize = 24;

/// Reads the arguments, calls the method of `servant_trait`, and sends the reply. No local variable has a name in `taken`: the parameters
/// have those.
pub(super) fn serve(
    scope: Scope<'_>,
    call: &Call<'_>,
    taken: &[Ident],
    servant_trait: &TokenStream,
    servant: &TokenStream,
) -> TokenStream {
    let [server_call, result] = names::fresh(["call", "result"], taken);
    let read = call
        .arguments
        .iter()
        .map(|argument| read(scope, argument, &server_call));
    let lent = call
        .arguments
        .iter()
        .map(|argument| lend(scope.tree, argument));
    let lent = lent.chain(call.context.iter().map(|(name, _)| quote!(&#name)));
    let read_context = read_context(call, &server_call);
    let method = &call.method;
    let recycled = call
        .arguments
        .iter()
        .filter(|argument| is_recycled(scope.tree, argument))
        .map(|argument| {
            let name = &argument.name;
            quote!(#server_call.recycle(#name);)
        });
    let reply = handle_result(scope, call, taken);
    let executed = call.is_timed().then(|| quote!(#server_call.executed();));
    let checked = call.check_message(&quote!(#server_call.arguments()));
    let checked = checked.map(|check| quote!(#check?;));
    quote! {
        #checked
        #(#read)*
        #read_context
        let #result = #servant_trait::#method(#servant, #(#lent),*);
        #executed
        #(#recycled)*
        #reply
    }
}

/// Reads the context values of a request, if its operation has any.
pub(super) fn read_context(call: &Call<'_>, server_call: &Ident) -> Option<TokenStream> {
    let (name, _) = call.context.as_ref()?;
    Some(quote!(let #name: ::rtorb::codegen::ContextValues = #server_call.argument()?;))
}

/// Sends the results, or the exception that the servant returned.
pub(super) fn handle_result(scope: Scope<'_>, call: &Call<'_>, taken: &[Ident]) -> TokenStream {
    let [result, exception] = names::fresh(["result", "exception"], taken);
    let reply = reply(call, taken);
    if call.raises.is_empty() {
        let bind = if call.results.is_empty() {
            quote!(#result?;)
        } else {
            quote!(let #result = #result?;)
        };
        return quote!(#bind #reply);
    }
    let error = call.error(scope);
    let variants = errors::variants(scope.tree, &call.raises).into_iter();
    let (variants, raised): (Vec<_>, Vec<_>) = variants
        .map(|(variant, id)| (variant, raise(scope, call, id, taken)))
        .unzip();
    let returned = if call.results.is_empty() {
        quote!(())
    } else {
        quote!(#result)
    };
    quote! {
        match #result {
            ::core::result::Result::Ok(#returned) => #reply,
            #(::core::result::Result::Err(#error::#variants(#exception)) => #raised,)*
            ::core::result::Result::Err(#error::System(#exception)) => ::core::result::Result::Err(#exception),
        }
    }
}

/// Sends the exception `id`.
fn raise(scope: Scope<'_>, call: &Call<'_>, id: ItemId, taken: &[Ident]) -> TokenStream {
    let [server_call, exception, w] = names::fresh(["call", "exception", "w"], taken);
    let Some(check) = call.check_message(&quote!(#w)) else {
        return quote!(#server_call.raise(&#exception));
    };
    let path = scope.path(id);
    quote! {
        #server_call.raise_with(
            <#path as ::rtorb::codegen::UserException>::REPOSITORY_ID,
            |#w| { ::rtorb::codegen::Encode::encode(&#exception, #w)?; #check },
        )
    }
}

fn reply(call: &Call<'_>, taken: &[Ident]) -> TokenStream {
    let [server_call, result, w] = names::fresh(["call", "result", "w"], taken);
    let mut steps: Vec<TokenStream> = match call.results.len() {
        1 => vec![quote!(::rtorb::codegen::Encode::encode(&#result, #w))],
        several => (0..several)
            .map(|position| {
                let position = Literal::usize_unsuffixed(position);
                quote!(::rtorb::codegen::Encode::encode(&#result.#position, #w))
            })
            .collect(),
    };
    steps.extend(call.check_message(&quote!(#w)));
    let closure = interfaces::in_turn(&w, &steps);
    quote!(#server_call.reply(#closure))
}

/// Reads an argument from the request.
fn read(scope: Scope<'_>, argument: &Argument<'_>, call: &Ident) -> TokenStream {
    let name = &argument.name;
    match types::lending(scope.tree, argument.ty) {
        Lending::Str => quote!(let #name = #call.arguments().str()?;),
        Lending::Octets => quote!(let #name = #call.arguments().octets()?;),
        Lending::Slice(element) => {
            let source = if types::is_primitive(scope.tree.resolved(element)) {
                quote!(arguments().primitives)
            } else {
                quote!(sequence)
            };
            let element = scope.owned(element);
            quote!(let #name = #call.#source::<#element>()?;)
        }
        Lending::ByValue | Lending::Reference | Lending::Borrowed => {
            let ty = scope.owned(argument.ty);
            quote!(let #name: #ty = #call.argument()?;)
        }
    }
}

/// The argument in the form that the servant takes.
fn lend(tree: &Tree, argument: &Argument<'_>) -> TokenStream {
    let name = &argument.name;
    match types::lending(tree, argument.ty) {
        Lending::ByValue | Lending::Octets => quote!(#name),
        Lending::Reference => quote!(#name.as_ref()),
        Lending::Str | Lending::Slice(_) | Lending::Borrowed => quote!(&#name),
    }
}

/// True if the next call reuses the memory of the argument.
fn is_recycled(tree: &Tree, argument: &Argument<'_>) -> bool {
    matches!(types::lending(tree, argument.ty), Lending::Slice(element) if !types::is_primitive(tree.resolved(element)))
}

/// The trait of a local interface `id`. Unlike a servant trait, it has nothing on the wire.
pub(super) fn local(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let name = names::item_ident(item);
    let documentation = super::documentation::attributes(&item.documentation);
    let bases = match &item.kind {
        ItemKind::Interface(interface) => interface.bases.iter(),
        _ => return TokenStream::new(),
    };
    let bases = bases.map(|&base| supertrait_path(scope, base));
    let supertraits = supertraits(bases.collect());
    let own = operations::own(scope.tree, id);
    let methods = own.iter().map(|call| call.declaration(scope));
    let errors = errors::generate(scope, &own);
    quote! {
        #documentation
        pub trait #name: #supertraits { #(#methods)* }
        #errors
    }
}

//! Operations as client and server code need them: attributes as operations, parameters sorted by direction.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};

use super::scope::Scope;
use super::{documentation, names, timings};
use crate::source::Location;
use crate::tree::{
    Attribute, Direction, InterfaceFlavour, ItemId, ItemKind, Operation, Timing, Tree, Type,
};

/// An operation, or one half of an attribute.
#[derive(Clone, Debug)]
pub(crate) struct Call<'t> {
    /// The interface that declares it.
    pub(super) owner: ItemId,
    /// Its name on the wire.
    pub(crate) wire_name: String,
    /// The Rust method.
    pub(super) method: Ident,
    /// The location of its IDL name.
    pub(crate) location: Location,
    /// The comment lines above it, and its annotations on timing.
    pub(super) documentation: Vec<String>,
    /// Its timing.
    pub(crate) timing: Timing,
    /// True if there is no reply.
    pub(super) oneway: bool,
    /// `in` and `inout`, in order.
    pub(super) arguments: Vec<Argument<'t>>,
    /// The return value if there is one, then `inout` and `out` in order.
    pub(super) results: Vec<&'t Type>,
    /// The names of the results as parameters of a reply handler.
    pub(super) result_names: Vec<Ident>,
    /// The exceptions that it may raise, each once.
    pub(super) raises: Vec<ItemId>,
    /// The parameter for context values, if there is a `context` clause, and the patterns of that clause.
    pub(super) context: Option<(Ident, &'t [String])>,
    /// True if it takes `&mut self`: it changes a valuetype. Objects are shared and take `&self`.
    changes: bool,
    /// Its part of the name of the error enum: `Resolve`, `SetX`.
    stem: String,
}

/// A parameter that goes to the servant.
#[derive(Clone, Debug)]
pub(super) struct Argument<'t> {
    /// The Rust parameter.
    pub(super) name: Ident,
    /// Its type.
    pub(super) ty: &'t Type,
}

/// The operations that the interface or valuetype `id` itself declares.
pub(crate) fn own(tree: &Tree, id: ItemId) -> Vec<Call<'_>> {
    let (operations, attributes) = match &tree.item(id).kind {
        ItemKind::Interface(interface) => (&interface.operations, &interface.attributes),
        ItemKind::Valuetype(value) => (&value.operations, &value.attributes),
        _ => return Vec::new(),
    };
    let operations = operations
        .iter()
        .map(|operation| Call::of_operation(id, operation));
    let attributes = attributes.iter().flat_map(|attribute| {
        let set = (!attribute.readonly).then(|| Call::of_set(tree, id, attribute));
        std::iter::once(Call::of_get(id, attribute)).chain(set)
    });
    operations.chain(attributes).collect()
}

/// The operations that an object of interface `id` has: those of every base, each once, and its own.
pub(super) fn all(tree: &Tree, id: ItemId) -> Vec<Call<'_>> {
    ancestors(tree, id)
        .into_iter()
        .chain([id])
        .flat_map(|id| own(tree, id))
        .collect()
}

/// Every base of interface `id`, direct or not, each once.
pub(super) fn ancestors(tree: &Tree, id: ItemId) -> Vec<ItemId> {
    match &tree.item(id).kind {
        ItemKind::Interface(interface) => tree.ancestors(interface),
        _ => Vec::new(),
    }
}

impl<'t> Call<'t> {
    /// An operation, or a factory.
    pub(super) fn of_operation(owner: ItemId, operation: &'t Operation) -> Self {
        let without = |direction| {
            let parameters = operation.parameters.iter();
            parameters.filter(move |parameter| parameter.direction != direction)
        };
        let returned = (operation.returns != Type::Void).then_some(&operation.returns);
        let arguments = without(Direction::Out).map(|parameter| Argument {
            name: names::value_ident(parameter),
            ty: &parameter.ty,
        });
        let results = without(Direction::In).map(|parameter| &parameter.ty);
        let returned_name = returned.map(|_| format_ident!("{RETURNED}"));
        let result_names = without(Direction::In).map(|parameter| names::value_ident(parameter));
        let arguments: Vec<Argument<'_>> = arguments.collect();
        let taken: Vec<Ident> = arguments.iter().map(|one| one.name.clone()).collect();
        let context = (!operation.context.is_empty()).then(|| {
            let [name] = names::fresh(["context"], &taken);
            (name, operation.context.as_slice())
        });
        Self {
            owner,
            wire_name: operation.name.clone(),
            method: names::value_ident(operation),
            location: operation.location,
            documentation: timings::documented(&operation.documentation, &operation.annotations),
            timing: operation.timing,
            oneway: operation.oneway,
            arguments,
            context,
            results: returned.into_iter().chain(results).collect(),
            result_names: distinct(returned_name.into_iter().chain(result_names)),
            raises: each_once(&operation.raises),
            changes: false,
            stem: names::stem(operation),
        }
    }

    fn of_get(owner: ItemId, attribute: &'t Attribute) -> Self {
        Self {
            owner,
            wire_name: format!("_get_{}", attribute.name),
            method: names::value_ident(attribute),
            location: attribute.location,
            documentation: timings::documented(&attribute.documentation, &attribute.annotations),
            timing: attribute.timing,
            oneway: false,
            arguments: Vec::new(),
            context: None,
            results: vec![&attribute.ty],
            result_names: vec![format_ident!("{RETURNED}")],
            raises: each_once(&attribute.get_raises),
            changes: false,
            stem: names::stem(attribute),
        }
    }

    fn of_set(tree: &Tree, owner: ItemId, attribute: &'t Attribute) -> Self {
        Self {
            wire_name: format!("_set_{}", attribute.name),
            method: names::set_ident(attribute),
            arguments: vec![Argument {
                name: format_ident!("value"),
                ty: &attribute.ty,
            }],
            results: Vec::new(),
            result_names: Vec::new(),
            raises: each_once(&attribute.set_raises),
            changes: matches!(tree.item(owner).kind, ItemKind::Valuetype(_)),
            stem: format!("Set{}", names::stem(attribute)),
            ..Self::of_get(owner, attribute)
        }
    }

    /// True if its calls are timed.
    pub(crate) fn is_timed(&self) -> bool {
        !self.timing.is_empty()
    }

    /// Checks the size of the message in a reader or writer, if the messages of the call have a bound.
    pub(super) fn check_message(&self, stream: &TokenStream) -> Option<TokenStream> {
        let bytes_max = Literal::u32_unsuffixed(self.timing.message_bytes_max?);
        Some(quote!(#stream.check_largest(#bytes_max)))
    }

    /// The name of the error enum of a call that raises exceptions.
    pub(super) fn error_ident(&self, tree: &Tree) -> Ident {
        format_ident!("{}{}Error", names::stem(tree.item(self.owner)), self.stem)
    }

    /// The error type.
    pub(super) fn error(&self, scope: Scope<'_>) -> TokenStream {
        if self.raises.is_empty() {
            quote!(::rtorb::codegen::SystemException)
        } else {
            scope.path_beside(self.owner, &self.error_ident(scope.tree))
        }
    }

    /// `fn name(&self, ...) -> Result<..., ...>`
    pub(super) fn signature(&self, scope: Scope<'_>) -> TokenStream {
        let receiver = if self.changes {
            quote!(&mut self)
        } else {
            quote!(&self)
        };
        let head = self.head(scope, &self.method, &receiver);
        let result = self.result(scope);
        quote!(#head -> #result)
    }

    /// `fn __name(object: &ObjectRef, ...) -> Result<..., ...>`, and the name of the object in it.
    pub(super) fn shared_signature(&self, scope: Scope<'_>) -> (TokenStream, Ident) {
        let [object] = names::fresh(["object"], &self.argument_names());
        let receiver = quote!(#object: &::rtorb::codegen::ObjectRef);
        let head = self.head(scope, &self.shared_method(), &receiver);
        let result = self.result(scope);
        (quote!(#head -> #result), object)
    }

    /// The function of a base that the methods of its own reference and of derived ones call. No method has such a name: snake
    /// case does not begin with underscores, and a chosen name not with two ([`names::is_name`]).
    pub(super) fn shared_method(&self) -> Ident {
        format_ident!("__{}", self.method)
    }

    /// `Result<..., ...>`
    pub(super) fn result(&self, scope: Scope<'_>) -> TokenStream {
        let (result, error) = (self.returned(scope), self.error(scope));
        quote!(::core::result::Result<#result, #error>)
    }

    /// The type of the results.
    pub(super) fn returned(&self, scope: Scope<'_>) -> TokenStream {
        let results: Vec<_> = self.results.iter().map(|ty| scope.owned(ty)).collect();
        match results.as_slice() {
            [one] => one.clone(),
            several => quote!((#(#several),*)),
        }
    }

    /// `fn name(...) -> Self`, for a factory.
    pub(super) fn constructor(&self, scope: Scope<'_>) -> TokenStream {
        let head = self.head(scope, &self.method, &TokenStream::new());
        let made = if self.raises.is_empty() {
            quote!(Self)
        } else {
            let error = self.error(scope);
            quote!(::core::result::Result<Self, #error>)
        };
        quote!(#head -> #made where Self: ::core::marker::Sized)
    }

    /// `fn method(receiver, ...)`
    pub(super) fn head(
        &self,
        scope: Scope<'_>,
        method: &impl ToTokens,
        receiver: &TokenStream,
    ) -> TokenStream {
        let names = self.argument_names();
        let types = self
            .arguments
            .iter()
            .map(|argument| scope.lent(argument.ty));
        let context = self.context.iter();
        let types = types.chain(context.map(|_| quote!(&::rtorb::codegen::ContextValues)));
        let receiver = (!receiver.is_empty()).then(|| quote!(#receiver,));
        quote!(fn #method(#receiver #(#names: #types),*))
    }

    /// The method of a trait, to be implemented.
    pub(super) fn declaration(&self, scope: Scope<'_>) -> TokenStream {
        let documentation = documentation::attributes(&self.documentation);
        let signature = self.signature(scope);
        quote!(#documentation #signature;)
    }

    /// The Rust parameters, that for context values last.
    pub(super) fn argument_names(&self) -> Vec<Ident> {
        let context = self.context.iter().map(|(name, _)| name.clone());
        self.arguments
            .iter()
            .map(|argument| argument.name.clone())
            .chain(context)
            .collect()
    }
}

/// The methods of every reference type, and those that a type has through Rust's own traits: a call would reach them instead
/// of an operation of that name.
pub(super) const RUST_METHODS: [&str; 22] = [
    "narrow",
    "unchecked_narrow",
    "as_object",
    "with_timeout",
    "with_deadline",
    "with_end_time",
    "with_sync_scope",
    "with_priority",
    "set_policy_overrides",
    "borrow",
    "borrow_mut",
    "clone",
    "clone_from",
    "clone_into",
    "eq",
    "fmt",
    "hash",
    "into",
    "ne",
    "to_owned",
    "try_into",
    "type_id",
];

/// The method by which a reference is printed. Types that are no references do not have it.
pub(super) const TO_STRING: &str = "to_string";

/// Every interface whose operations some reference type inherits.
pub(super) fn bases(tree: &Tree) -> BTreeSet<ItemId> {
    let of = |id| match &tree.item(id).kind {
        ItemKind::Interface(interface) if interface.flavour != InterfaceFlavour::Local => {
            tree.ancestors(interface)
        }
        _ => Vec::new(),
    };
    tree.ids().flat_map(of).collect()
}

/// The name of a return value as a parameter of a reply handler (CORBA 3, 22.8).
const RETURNED: &str = "ami_return_val";

/// The names, of which those that were before get trailing underscores.
fn distinct(names: impl Iterator<Item = Ident>) -> Vec<Ident> {
    names.fold(Vec::new(), |mut all, mut name| {
        while all.contains(&name) {
            name = format_ident!("{name}_");
        }
        all.push(name);
        all
    })
}

fn each_once(raises: &[ItemId]) -> Vec<ItemId> {
    let mut seen = BTreeSet::new();
    let raises = raises.iter().copied();
    raises.filter(|&id| seen.insert(id)).collect()
}

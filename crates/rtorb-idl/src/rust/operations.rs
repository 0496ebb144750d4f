//! Operations as both sides of a call see them: attributes made into operations, parameters sorted by direction.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::scope::Scope;
use super::{documentation, names, timings};
use crate::source::Location;
use crate::tree::{Attribute, Direction, ItemId, ItemKind, Operation, Timing, Tree, Type};

/// An operation, or one half of an attribute.
#[derive(Clone, Debug)]
pub(super) struct Call<'t> {
    /// The interface that declares it.
    pub(super) owner: ItemId,
    /// What goes on the wire.
    pub(super) wire_name: String,
    /// The Rust method.
    pub(super) method: Ident,
    /// Where its IDL name stands.
    pub(super) location: Location,
    /// The comment lines above it, and what its annotations say of its timing.
    pub(super) documentation: Vec<String>,
    /// The same for the ORB.
    pub(super) timing: Timing,
    /// True if nothing comes back.
    pub(super) oneway: bool,
    /// `in` and `inout`, in order.
    pub(super) arguments: Vec<Argument<'t>>,
    /// The return value if there is one, then `inout` and `out` in order.
    pub(super) results: Vec<&'t Type>,
    /// What it may raise, each once.
    pub(super) raises: Vec<ItemId>,
    /// True if it changes a value, which is done in place; an object is shared.
    changes: bool,
    /// The name of its error enum is made of this: `Resolve`, `SetX`.
    stem: String,
}

/// What goes to the servant.
#[derive(Clone, Debug)]
pub(super) struct Argument<'t> {
    /// The Rust parameter.
    pub(super) name: Ident,
    /// Its type.
    pub(super) ty: &'t Type,
}

/// The operations that the interface or valuetype `id` itself declares.
pub(super) fn own(tree: &Tree, id: ItemId) -> Vec<Call<'_>> {
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
        let way_there = operation
            .parameters
            .iter()
            .filter(|parameter| parameter.direction != Direction::Out);
        let way_back = operation
            .parameters
            .iter()
            .filter(|parameter| parameter.direction != Direction::In);
        let returned = (operation.returns != Type::Void).then_some(&operation.returns);
        let arguments = way_there.map(|parameter| Argument {
            name: names::value_ident(&parameter.name),
            ty: &parameter.ty,
        });
        Self {
            owner,
            wire_name: operation.name.clone(),
            method: method_ident(&operation.name),
            location: operation.location,
            documentation: timings::documented(&operation.documentation, &operation.annotations),
            timing: operation.timing,
            oneway: operation.oneway,
            arguments: arguments.collect(),
            results: returned
                .into_iter()
                .chain(way_back.map(|parameter| &parameter.ty))
                .collect(),
            raises: each_once(&operation.raises),
            changes: false,
            stem: names::upper_camel(&operation.name),
        }
    }

    fn of_get(owner: ItemId, attribute: &'t Attribute) -> Self {
        Self {
            owner,
            wire_name: format!("_get_{}", attribute.name),
            method: method_ident(&attribute.name),
            location: attribute.location,
            documentation: timings::documented(&attribute.documentation, &attribute.annotations),
            timing: attribute.timing,
            oneway: false,
            arguments: Vec::new(),
            results: vec![&attribute.ty],
            raises: each_once(&attribute.get_raises),
            changes: false,
            stem: names::upper_camel(&attribute.name),
        }
    }

    fn of_set(tree: &Tree, owner: ItemId, attribute: &'t Attribute) -> Self {
        Self {
            owner,
            wire_name: format!("_set_{}", attribute.name),
            method: format_ident!("set_{}", names::snake(&attribute.name)),
            location: attribute.location,
            documentation: timings::documented(&attribute.documentation, &attribute.annotations),
            timing: attribute.timing,
            oneway: false,
            arguments: vec![Argument {
                name: format_ident!("value"),
                ty: &attribute.ty,
            }],
            results: Vec::new(),
            raises: each_once(&attribute.set_raises),
            changes: matches!(tree.item(owner).kind, ItemKind::Valuetype(_)),
            stem: format!("Set{}", names::upper_camel(&attribute.name)),
        }
    }

    /// True if its calls are timed.
    pub(super) fn is_timed(&self) -> bool {
        !self.timing.is_empty()
    }

    /// The name of the enum of what may go wrong, for a call that raises.
    pub(super) fn error_ident(&self, tree: &Tree) -> Ident {
        format_ident!(
            "{}{}Error",
            names::upper_camel(&tree.item(self.owner).name),
            self.stem
        )
    }

    /// The type of what may go wrong.
    pub(super) fn error(&self, scope: Scope<'_>) -> TokenStream {
        if self.raises.is_empty() {
            quote!(::rtorb::codegen::SystemException)
        } else {
            scope.path_beside(self.owner, &self.error_ident(scope.tree))
        }
    }

    /// `fn name(&self, ...) -> Result<..., ...>`
    pub(super) fn signature(&self, scope: Scope<'_>) -> TokenStream {
        let results: Vec<_> = self.results.iter().map(|ty| scope.owned(ty)).collect();
        let result = match results.as_slice() {
            [one] => one.clone(),
            several => quote!((#(#several),*)),
        };
        let error = self.error(scope);
        let receiver = if self.changes {
            quote!(&mut self)
        } else {
            quote!(&self)
        };
        let head = self.head(scope, &receiver);
        quote!(#head -> ::core::result::Result<#result, #error>)
    }

    /// `fn name(...) -> Self`, for a factory.
    pub(super) fn constructor(&self, scope: Scope<'_>) -> TokenStream {
        let head = self.head(scope, &TokenStream::new());
        let made = if self.raises.is_empty() {
            quote!(Self)
        } else {
            let error = self.error(scope);
            quote!(::core::result::Result<Self, #error>)
        };
        quote!(#head -> #made where Self: ::core::marker::Sized)
    }

    fn head(&self, scope: Scope<'_>, receiver: &TokenStream) -> TokenStream {
        let method = &self.method;
        let names = self.argument_names();
        let types = self
            .arguments
            .iter()
            .map(|argument| scope.lent(argument.ty));
        let receiver = (!receiver.is_empty()).then(|| quote!(#receiver,));
        quote!(fn #method(#receiver #(#names: #types),*))
    }

    /// The method of a trait, to be implemented.
    pub(super) fn declaration(&self, scope: Scope<'_>) -> TokenStream {
        let documentation = documentation::attributes(&self.documentation);
        let signature = self.signature(scope);
        quote!(#documentation #signature;)
    }

    /// The Rust parameters.
    pub(super) fn argument_names(&self) -> Vec<Ident> {
        self.arguments
            .iter()
            .map(|argument| argument.name.clone())
            .collect()
    }
}

/// What every reference type has besides its operations; an operation of such a name gets a trailing underscore.
pub(super) const REFERENCE_METHODS: [&str; 3] = ["narrow", "unchecked_narrow", "as_object"];

fn method_ident(name: &str) -> Ident {
    let method = names::value_ident(name);
    if REFERENCE_METHODS.iter().any(|taken| method == taken) {
        format_ident!("{method}_")
    } else {
        method
    }
}

fn each_once(raises: &[ItemId]) -> Vec<ItemId> {
    let mut once = Vec::new();
    for id in raises {
        if !once.contains(id) {
            once.push(*id);
        }
    }
    once
}

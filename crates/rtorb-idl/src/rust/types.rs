//! The Rust types of IDL types, and their properties.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::scope::Scope;
use crate::tree::{InterfaceFlavour, ItemId, ItemKind, Tree, Type};

impl Scope<'_> {
    /// The type of a member or a result.
    pub(super) fn owned(self, ty: &Type) -> TokenStream {
        match ty {
            Type::String { bound: None } => quote!(::std::string::String),
            Type::String { bound: Some(bound) } => generic("BoundedString", &[], &[*bound]),
            Type::WString { bound: None } => quote!(::rtorb::codegen::WString),
            Type::WString { bound: Some(bound) } => generic("BoundedWString", &[], &[*bound]),
            Type::Fixed { digits, scale } => {
                generic("Fixed", &[], &[u32::from(*digits), u32::from(*scale)])
            }
            Type::Sequence {
                element,
                bound: None,
            } => {
                let element = self.owned(element);
                quote!(::std::vec::Vec<#element>)
            }
            Type::Sequence {
                element,
                bound: Some(bound),
            } => generic("BoundedSequence", &[self.owned(element)], &[*bound]),
            Type::Array {
                element,
                dimensions,
            } => {
                let nest = |inner: TokenStream, length: &u32| {
                    let length = Literal::u32_unsuffixed(*length);
                    quote!([#inner; #length])
                };
                dimensions.iter().rev().fold(self.owned(element), nest)
            }
            Type::Named(id) if !is_reference(&self.tree.item(*id).kind) => self.path(*id),
            Type::Object | Type::Named(_) => {
                let reference = self.referred(ty);
                quote!(::core::option::Option<#reference>)
            }
            _ => Plain::of(ty).rust_type(),
        }
    }

    /// The type of an `in` parameter and of the incoming half of an `inout` one.
    pub(super) fn lent(self, ty: &Type) -> TokenStream {
        match lending(self.tree, ty) {
            Lending::ByValue => self.owned(ty),
            Lending::Str => quote!(&str),
            Lending::Octets => quote!(&[u8]),
            Lending::Slice(element) => {
                let element = self.owned(element);
                quote!(&[#element])
            }
            Lending::Reference => {
                let reference = self.referred(ty);
                quote!(::core::option::Option<&#reference>)
            }
            Lending::Borrowed => {
                let owned = self.owned(ty);
                quote!(&#owned)
            }
        }
    }

    /// The type of an object reference or value that is not nil.
    fn referred(self, ty: &Type) -> TokenStream {
        let Type::Named(id) = self.tree.resolved(ty) else {
            return quote!(::rtorb::codegen::ObjectRef);
        };
        let path = self.path(*id);
        match &self.tree.item(*id).kind {
            ItemKind::Valuetype(_) | ItemKind::ValueBox { .. } => quote!(::std::sync::Arc<#path>),
            _ if is_local_interface(self.tree, *id) => quote!(::std::sync::Arc<dyn #path>),
            _ => path,
        }
    }
}

/// A type without parts, as generated code names it.
pub(super) struct Plain {
    /// The Rust type.
    pub(super) rust: &'static str,
    /// The constant of `TypeCode`.
    pub(super) type_code: &'static str,
}

impl Plain {
    pub(super) fn of(ty: &Type) -> Self {
        let (rust, type_code) = match ty {
            Type::Void => ("()", "VOID"),
            Type::Short => ("i16", "SHORT"),
            Type::UShort => ("u16", "USHORT"),
            Type::Long => ("i32", "LONG"),
            Type::ULong => ("u32", "ULONG"),
            Type::LongLong => ("i64", "LONG_LONG"),
            Type::ULongLong => ("u64", "ULONG_LONG"),
            // CORBA has no TypeCode kind for an 8-bit integer. `octet` has the same encoding.
            Type::Int8 => ("i8", "OCTET"),
            Type::Octet => ("u8", "OCTET"),
            Type::Float => ("f32", "FLOAT"),
            Type::Double => ("f64", "DOUBLE"),
            Type::LongDouble => ("::rtorb::codegen::LongDouble", "LONG_DOUBLE"),
            Type::Boolean => ("bool", "BOOLEAN"),
            Type::Char => ("char", "CHAR"),
            Type::WChar => ("::rtorb::codegen::WChar", "WCHAR"),
            Type::Any => ("::rtorb::codegen::Any", "ANY"),
            Type::TypeCode => ("::rtorb::codegen::TypeCode", "TYPE_CODE"),
            _ => unreachable!("refused before generation: {ty:?}"),
        };
        Self { rust, type_code }
    }

    fn rust_type(&self) -> TokenStream {
        self.rust.parse().expect("the table holds Rust types")
    }
}

/// How a parameter is passed to an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lending<'t> {
    /// Small and `Copy`.
    ByValue,
    /// `&str`
    Str,
    /// `&[u8]`
    Octets,
    /// `&[T]`
    Slice(&'t Type),
    /// `Option<&T>`: object references and values, which may be nil.
    Reference,
    /// `&T`
    Borrowed,
}

/// How a parameter of type `ty` is passed to an operation.
pub(super) fn lending<'t>(tree: &'t Tree, ty: &'t Type) -> Lending<'t> {
    match tree.resolved(ty) {
        Type::String { bound: None } => Lending::Str,
        Type::Sequence {
            element,
            bound: None,
        } if *tree.resolved(element) == Type::Octet => Lending::Octets,
        Type::Sequence {
            element,
            bound: None,
        } => Lending::Slice(element),
        Type::Object => Lending::Reference,
        Type::Named(id) => match tree.item(*id).kind {
            ItemKind::Enum { .. } => Lending::ByValue,
            ref kind if is_reference(kind) => Lending::Reference,
            _ => Lending::Borrowed,
        },
        Type::Fixed { .. } | Type::Char | Type::WChar | Type::LongDouble => Lending::ByValue,
        ty if is_number(ty) => Lending::ByValue,
        _ => Lending::Borrowed,
    }
}

/// True if the Rust type of `ty` is `Copy`.
pub(super) fn is_copy(tree: &Tree, ty: &Type) -> bool {
    match tree.resolved(ty) {
        Type::Fixed { .. } | Type::Char | Type::WChar | Type::LongDouble => true,
        Type::Array { element, .. } => is_copy(tree, element),
        Type::Named(id) => match &tree.item(*id).kind {
            ItemKind::Enum { .. } => true,
            kind @ (ItemKind::Struct { .. } | ItemKind::Exception { .. } | ItemKind::Union(_)) => {
                parts(kind).into_iter().all(|part| is_copy(tree, part))
            }
            _ => false,
        },
        ty => is_number(ty),
    }
}

/// True if all values of `ty` have the same size and alignment on the wire: the generated type implements `FixedLayout`.
pub(super) fn has_fixed_layout(tree: &Tree, ty: &Type) -> bool {
    match tree.resolved(ty) {
        Type::Array { element, .. } => has_fixed_layout(tree, element),
        Type::Named(id) => match &tree.item(*id).kind {
            ItemKind::Enum { .. } => true,
            ItemKind::Struct { members, .. } => {
                !members.is_empty()
                    && members
                        .iter()
                        .all(|member| has_fixed_layout(tree, &member.ty))
            }
            _ => false,
        },
        ty => is_number(ty),
    }
}

/// The items that a type contains, and its bases.
pub(super) fn made_of(kind: &ItemKind) -> Vec<ItemId> {
    let bases: &[ItemId] = match kind {
        ItemKind::Valuetype(value) => &value.bases,
        _ => &[],
    };
    let parts = parts(kind).into_iter().filter_map(named);
    parts.chain(bases.iter().copied()).collect()
}

/// The types of the members of a type, or the type that an alias or a value box stands for.
fn parts(kind: &ItemKind) -> Vec<&Type> {
    match kind {
        ItemKind::Struct { members, .. } | ItemKind::Exception { members, .. } => {
            members.iter().map(|member| &member.ty).collect()
        }
        ItemKind::Union(union) => union.cases.iter().map(|case| &case.member.ty).collect(),
        ItemKind::Alias { ty } | ItemKind::ValueBox { ty } => vec![ty],
        ItemKind::Valuetype(value) => value.state.iter().map(|state| &state.member.ty).collect(),
        _ => Vec::new(),
    }
}

/// True if the generated type `id` implements `Eq`: every type inside it does.
///
/// A recursive type needs no special case: its impls have no bounds, so each type inside it may rely on the others.
pub(super) fn is_eq(tree: &Tree, id: ItemId) -> bool {
    contains_none(tree, id, &[Type::Float, Type::Double, Type::Any])
}

/// True if the generated type `id` implements `Hash`: every type inside it does.
pub(super) fn is_hash(tree: &Tree, id: ItemId) -> bool {
    is_eq(tree, id) && contains_none(tree, id, &[Type::TypeCode])
}

fn contains_none(tree: &Tree, id: ItemId, excluded: &[Type]) -> bool {
    let inside = everything_in(tree, id);
    let mut types = inside.iter().flat_map(|&id| parts(&tree.item(id).kind));
    !types.any(|ty| excluded.contains(innermost(ty)))
}

/// The item that a type names, behind sequences and arrays.
pub(super) fn named(ty: &Type) -> Option<ItemId> {
    match innermost(ty) {
        Type::Named(id) => Some(*id),
        _ => None,
    }
}

/// The type of the elements behind sequences and arrays.
fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::Sequence { element, .. } | Type::Array { element, .. } => innermost(element),
        ty => ty,
    }
}

/// The local interface or native type inside the type `id`, if there is one. It keeps values of `id` inside the process.
pub(super) fn kept_inside_by(tree: &Tree, id: ItemId) -> Option<ItemId> {
    let never_leaves =
        |id: ItemId| is_local_interface(tree, id) || matches!(tree.item(id).kind, ItemKind::Native);
    everything_in(tree, id)
        .into_iter()
        .find(|&part| never_leaves(part))
}

/// The type `id` and all items that it contains, each once.
pub(super) fn everything_in(tree: &Tree, id: ItemId) -> Vec<ItemId> {
    let mut found = vec![id];
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        next += 1;
        for part in made_of(&tree.item(id).kind) {
            if !found.contains(&part) {
                found.push(part);
            }
        }
    }
    found
}

/// True for object references and values, which may be nil.
fn is_reference(kind: &ItemKind) -> bool {
    matches!(
        kind,
        ItemKind::Interface(_)
            | ItemKind::Undefined { .. }
            | ItemKind::Valuetype(_)
            | ItemKind::ValueBox { .. }
    )
}

/// True if `id` is a local interface.
pub(super) fn is_local_interface(tree: &Tree, id: ItemId) -> bool {
    matches!(&tree.item(id).kind, ItemKind::Interface(interface) if interface.flavour == InterfaceFlavour::Local)
}

/// True for numbers and booleans, but not for `char`, because not every `char` can be sent.
pub(super) fn is_number(ty: &Type) -> bool {
    is_primitive(ty) || *ty == Type::Boolean
}

/// True for numbers: a servant borrows a sequence of them from the message.
pub(super) fn is_primitive(ty: &Type) -> bool {
    ty.is_integer() || matches!(ty, Type::Float | Type::Double)
}

/// `codegen::NAME<TYPES, NUMBERS>`
fn generic(name: &str, types: &[TokenStream], numbers: &[u32]) -> TokenStream {
    let name = quote::format_ident!("{name}");
    let numbers = numbers
        .iter()
        .map(|number| Literal::u32_unsuffixed(*number));
    quote!(::rtorb::codegen::#name<#(#types,)* #(#numbers),*>)
}

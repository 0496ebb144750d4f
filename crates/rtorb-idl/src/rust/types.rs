//! The Rust types of IDL types, and their properties.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::abstract_values;
use super::scope::Scope;
use crate::tree::{InterfaceFlavour, ItemId, ItemKind, Tree, Type};

impl Scope<'_> {
    /// The type of a member or a result.
    pub(super) fn owned(self, ty: &Type) -> TokenStream {
        match ty {
            Type::String { bound: None } => quote!(::rtorb::codegen::String),
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
                quote!(::rtorb::codegen::Vec<#element>)
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
            Type::Map { key, value, bound } => {
                let (key, value) = (self.owned(key), self.owned(value));
                match bound {
                    Some(bound) => generic("BoundedMap", &[key, value], &[*bound]),
                    None => quote!(::rtorb::codegen::BTreeMap<#key, #value>),
                }
            }
            Type::Named(id) if !is_reference(&self.tree.item(*id).kind) => self.path(*id),
            Type::Object | Type::ValueBase | Type::Named(_) => {
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
        let id = match self.tree.resolved(ty) {
            Type::Named(id) => id,
            Type::ValueBase => return self.outermost_path(abstract_values::VALUE_BASE),
            _ => return quote!(::rtorb::codegen::ObjectRef),
        };
        let path = self.path(*id);
        match &self.tree.item(*id).kind {
            ItemKind::Valuetype(value) if value.is_abstract => path,
            ItemKind::Valuetype(_) | ItemKind::ValueBox { .. } => {
                quote!(::rtorb::codegen::Arc<#path>)
            }
            _ if is_local_interface(self.tree, *id) => quote!(::rtorb::codegen::Arc<dyn #path>),
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
        Type::Object | Type::ValueBase => Lending::Reference,
        Type::Named(id) => match tree.item(*id).kind {
            ItemKind::Enum { .. } | ItemKind::Bitmask(_) | ItemKind::Bitset(_) => Lending::ByValue,
            ref kind if is_reference(kind) => Lending::Reference,
            _ => Lending::Borrowed,
        },
        Type::Fixed { .. } | Type::Char | Type::WChar | Type::LongDouble => Lending::ByValue,
        ty if is_number(ty) => Lending::ByValue,
        _ => Lending::Borrowed,
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

/// The types of the members of a type, or the type that an alias or a value box stands for. The keys and values of a map are
/// parts beside it.
pub(super) fn parts(kind: &ItemKind) -> Vec<&Type> {
    let types = match kind {
        ItemKind::Struct { members, .. } | ItemKind::Exception { members, .. } => {
            members.iter().map(|member| &member.ty).collect()
        }
        ItemKind::Union(union) => union.cases.iter().map(|case| &case.member.ty).collect(),
        ItemKind::Alias { ty } | ItemKind::ValueBox { ty } => vec![ty],
        ItemKind::Valuetype(value) => value.state.iter().map(|state| &state.member.ty).collect(),
        _ => Vec::new(),
    };
    types.into_iter().flat_map(with_maps).collect()
}

/// The type itself, and the keys and values of maps inside it.
pub(super) fn with_maps(ty: &Type) -> Vec<&Type> {
    let mut types = vec![ty];
    if let Type::Map { key, value, .. } = innermost(ty) {
        types.extend(with_maps(key));
        types.extend(with_maps(value));
    }
    types
}

/// True if values of `ty` can be the keys of a map in Rust: they are in order.
pub(super) fn is_key(tree: &Tree, ty: &Type) -> bool {
    match tree.resolved(ty) {
        Type::Boolean | Type::Char | Type::WChar | Type::String { .. } | Type::WString { .. } => {
            true
        }
        Type::Named(id) => matches!(tree.item(*id).kind, ItemKind::Enum { .. }),
        ty => ty.is_integer(),
    }
}

/// The item that a type names, behind sequences and arrays.
pub(super) fn named(ty: &Type) -> Option<ItemId> {
    match innermost(ty) {
        Type::Named(id) => Some(*id),
        _ => None,
    }
}

/// The type of the elements behind sequences and arrays.
pub(super) fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::Sequence { element, .. } | Type::Array { element, .. } => innermost(element),
        ty => ty,
    }
}

/// True for object references and values, which may be nil.
pub(super) fn is_reference(kind: &ItemKind) -> bool {
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

/// True if `id` is an abstract interface.
pub(super) fn is_abstract_interface(tree: &Tree, id: ItemId) -> bool {
    matches!(&tree.item(id).kind, ItemKind::Interface(interface) if interface.flavour == InterfaceFlavour::Abstract)
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

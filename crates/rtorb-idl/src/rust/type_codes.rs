//! TypeCodes of generated types. An `any` needs them to hold values of these types.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cycles::Cycles;
use super::scope::Scope;
use super::types::{self, Plain};
use super::{abstract_values, names, structs, values};
use crate::tree::{
    Bitmask, Bitset, Item, ItemId, ItemKind, StateMember, TYPE_CODE_LEVELS_MAX,
    TYPE_CODE_TYPES_MAX, Tree, Type, Union, UnionCase, Value, Valuetype,
};

/// `impl Typed` for the struct, union, enum, exception, valuetype or interface `id`.
pub(super) fn typed(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let name = names::item_ident(scope.tree.item(id));
    let type_code = Description {
        scope,
        enclosing: Vec::new(),
    }
    .declared(id);
    quote!(::rtorb::codegen::typed!(#name = #type_code);)
}

/// True if the TypeCode of `id` has more types or levels than text is generated for. Types of one cycle are in it once for each way that
/// leads to them, so that a few can be in it in every order.
pub(super) fn is_too_large(tree: &Tree, cycles: &Cycles, id: ItemId) -> bool {
    let mut size = Size {
        tree,
        cycles,
        root: id,
        is_around: vec![false; tree.items.len()],
        depth: 0,
        visited: 0,
    };
    size.of(id).is_none()
}

/// Counts the types of the text that a [`Description`] generates.
struct Size<'t> {
    tree: &'t Tree,
    cycles: &'t Cycles,
    root: ItemId,
    /// For each item whether it is around the current place.
    is_around: Vec<bool>,
    depth: usize,
    visited: usize,
}

impl Size<'_> {
    /// The types in the TypeCode of `id` at the current place; `None` beyond a limit.
    fn of(&mut self, id: ItemId) -> Option<usize> {
        self.visited += 1;
        let kind = &self.tree.item(id).kind;
        let index = id.0 as usize;
        let is_inside = matches!(kind, ItemKind::Alias { .. }) || self.cycles.joins(id, self.root);
        if !is_inside || self.is_around[index] {
            return Some(1);
        }
        if self.depth == TYPE_CODE_LEVELS_MAX || self.visited > TYPE_CODE_TYPES_MAX {
            return None;
        }
        self.is_around[index] = true;
        self.depth += 1;
        let mut types = 1;
        for (part, times) in inlined(kind) {
            types += times * self.of(part)?;
            if types > TYPE_CODE_TYPES_MAX {
                return None;
            }
        }
        self.depth -= 1;
        self.is_around[index] = false;
        Some(types)
    }
}

/// The items that a type contains, each with the number of times that the text has it.
fn inlined(kind: &ItemKind) -> Vec<(ItemId, usize)> {
    let ItemKind::Union(union) = kind else {
        let parts = types::made_of(kind).into_iter();
        return parts.map(|id| (id, 1)).collect();
    };
    let of_case = |case: &UnionCase| {
        let times = case.labels.len() + usize::from(case.is_default);
        let types = types::with_maps(&case.member.ty).into_iter();
        let parts: Vec<ItemId> = types.filter_map(types::named).collect();
        parts.into_iter().map(move |id| (id, times))
    };
    union.cases.iter().flat_map(of_case).collect()
}

/// Generates TypeCodes at one place inside a type.
struct Description<'t> {
    scope: Scope<'t>,
    /// The types around the place, outermost first.
    enclosing: Vec<ItemId>,
}

impl<'t> Description<'t> {
    /// A type as it is used.
    fn used(&self, ty: &Type) -> TokenStream {
        let type_code = quote!(::rtorb::codegen::TypeCode);
        match ty {
            Type::String { bound } => bounded(&quote!(#type_code::string), *bound),
            Type::WString { bound } => bounded(&quote!(#type_code::wstring), *bound),
            Type::Fixed { digits, scale } => {
                let [digits, scale] = [digits, scale].map(|count| Literal::u16_unsuffixed(*count));
                quote!(#type_code::fixed(#digits, #scale))
            }
            Type::Sequence { element, bound } => {
                let element = self.used(element);
                let bound = Literal::u32_unsuffixed(bound.unwrap_or(0));
                quote!(#type_code::sequence(#element, #bound))
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let nest = |element: TokenStream, length: &u32| {
                    let length = Literal::u32_unsuffixed(*length);
                    quote!(#type_code::array(#element, #length))
                };
                dimensions.iter().rev().fold(self.used(element), nest)
            }
            Type::Map { key, value, bound } => {
                let (key, value) = (self.used(key), self.used(value));
                let bound = Literal::u32_unsuffixed(bound.unwrap_or(0));
                quote!(::rtorb::codegen::map_type_code(#key, #value, #bound))
            }
            Type::Object => {
                quote!(#type_code::object_reference("IDL:omg.org/CORBA/Object:1.0", "Object"))
            }
            Type::ValueBase => {
                let path = self.scope.outermost_path(abstract_values::VALUE_BASE);
                quote!(<#path as ::rtorb::codegen::Typed>::type_code())
            }
            Type::Named(id) => self.named(*id),
            plain => {
                let constant = quote::format_ident!("{}", Plain::of(plain).type_code);
                quote!(#type_code::#constant)
            }
        }
    }

    fn named(&self, id: ItemId) -> TokenStream {
        let item = self.scope.tree.item(id);
        let (repository_id, name) = (&item.repository_id, &item.name);
        match &item.kind {
            ItemKind::Alias { ty } => {
                let content = self.used(ty);
                quote!(::rtorb::codegen::TypeCode::alias(#repository_id, #name, #content))
            }
            ItemKind::Interface(_) | ItemKind::Undefined { .. } => self.declared(id),
            _ if self.enclosing.contains(&id) => {
                quote!(::rtorb::codegen::TypeCode::recursive(#repository_id))
            }
            // Calling `type_code` of a type that contains this one would never end.
            _ if self.is_recursive(id) => self.declared(id),
            _ => {
                let path = self.scope.path(id);
                quote!(<#path as ::rtorb::codegen::Typed>::type_code())
            }
        }
    }

    /// True if `id` contains a type around this place. All of those contain `id`.
    fn is_recursive(&self, id: ItemId) -> bool {
        let cycles = &self.scope.layouts.cycles;
        self.enclosing.iter().any(|&outer| cycles.joins(id, outer))
    }

    /// The whole TypeCode of the item `id`.
    fn declared(&self, id: ItemId) -> TokenStream {
        let item = self.scope.tree.item(id);
        let (repository_id, name) = (&item.repository_id, &item.name);
        let inside = Description {
            scope: self.scope,
            enclosing: self.enclosing.iter().copied().chain([id]).collect(),
        };
        let type_code = quote!(::rtorb::codegen::TypeCode);
        match &item.kind {
            ItemKind::Struct { .. } => {
                let members = inside.members(id);
                quote!(#type_code::structure(#repository_id, #name, #members))
            }
            ItemKind::Exception { .. } => {
                let members = inside.members(id);
                quote!(#type_code::exception(#repository_id, #name, #members))
            }
            ItemKind::Enum { enumerators } => {
                let names = enumerators.iter().map(|enumerator| &enumerator.name);
                quote!(#type_code::enumeration(#repository_id, #name, [#(#names),*]))
            }
            // GIOP has neither: others see the integer.
            ItemKind::Bitmask(Bitmask { holder, .. }) | ItemKind::Bitset(Bitset { holder, .. }) => {
                let content = inside.used(holder);
                quote!(#type_code::alias(#repository_id, #name, #content))
            }
            ItemKind::Interface(_) if types::is_abstract_interface(self.scope.tree, id) => {
                quote!(#type_code::abstract_interface(#repository_id, #name))
            }
            ItemKind::Interface(_) | ItemKind::Undefined { .. } => {
                quote!(#type_code::object_reference(#repository_id, #name))
            }
            ItemKind::Union(union) => inside.union(item, union),
            ItemKind::Valuetype(value) => inside.value(item, value),
            ItemKind::ValueBox { ty } => {
                let content = inside.used(ty);
                quote!(::rtorb::codegen::valuetype::box_type_code(#repository_id, #name, #content))
            }
            _ => unreachable!(
                "only structs, exceptions, enums, bits, unions, values and interfaces have a TypeCode of their own"
            ),
        }
    }

    fn members(&self, id: ItemId) -> TokenStream {
        let members = structs::members(self.scope.tree, id)
            .into_iter()
            .map(|member| {
                let (name, ty) = (&member.name, self.used(&member.wire_type()));
                quote!((#name, #ty))
            });
        quote!([#(#members),*])
    }

    /// A member with several labels appears once for each label. The default appears once more, with a label that has no
    /// meaning.
    fn union(&self, item: &Item, union: &Union) -> TokenStream {
        let (repository_id, name) = (&item.repository_id, &item.name);
        let discriminator = self.used(&union.discriminator);
        let mut members = Vec::new();
        let mut default = quote!(::core::option::Option::None);
        for UnionCase {
            labels,
            is_default,
            member,
        } in &union.cases
        {
            let member_name = &member.name;
            let ty = self.used(&member.ty);
            for label in labels {
                let label = self.label(label);
                members.push(quote!((#label, #member_name, #ty)));
            }
            if *is_default {
                let index = Literal::usize_unsuffixed(members.len());
                default = quote!(::core::option::Option::Some(#index));
                members.push(quote!((0, #member_name, #ty)));
            }
        }
        quote! {
            ::rtorb::codegen::TypeCode::union(#repository_id, #name, #discriminator, #default, [#(#members),*])
        }
    }

    /// The state that the valuetype adds to its base's, with true for public members.
    fn value(&self, item: &Item, value: &Valuetype) -> TokenStream {
        let (repository_id, name) = (&item.repository_id, &item.name);
        let concrete = value
            .bases
            .iter()
            .find(|base| !values::is_abstract(self.scope.tree, **base));
        let base = match concrete {
            Some(&base) => self.named(base),
            None => quote!(::rtorb::codegen::TypeCode::NULL),
        };
        let constructor = if value.is_event {
            quote!(event_type_code)
        } else {
            quote!(type_code)
        };
        let modifier = Literal::i16_unsuffixed(value.modifier());
        let members = value.state.iter().map(|StateMember { is_public, member }| {
            let name = &member.name;
            let ty = self.used(&member.wire_type());
            quote!((#name, #ty, #is_public))
        });
        quote!(::rtorb::codegen::valuetype::#constructor(#repository_id, #name, #modifier, #base, [#(#members),*]))
    }

    /// A label as the number that it is on the wire.
    fn label(&self, label: &Value) -> TokenStream {
        let number = match label {
            Value::Integer(number) => *number,
            Value::Boolean(value) => i128::from(*value),
            Value::Char(character) => i128::from(u32::from(*character)),
            Value::Enumerator(_, position) => i128::from(*position),
            Value::Float(_) | Value::Fixed { .. } | Value::Text(_) => {
                unreachable!("the checker lets no such label pass")
            }
        };
        // An unsigned long long keeps its bits, as the constructor wants it.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "every label has at most 64 bits"
        )]
        let number = number as i64;
        let size = Literal::u64_unsuffixed(number.unsigned_abs());
        if number < 0 {
            quote!(-#size)
        } else {
            quote!(#size)
        }
    }
}

fn bounded(constructor: &TokenStream, bound: Option<u32>) -> TokenStream {
    let bound = Literal::u32_unsuffixed(bound.unwrap_or(0));
    quote!(#constructor(#bound))
}

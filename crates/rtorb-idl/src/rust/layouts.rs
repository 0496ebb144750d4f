//! The properties of all generated types that depend on what they contain, computed once for the whole tree.

use std::collections::VecDeque;

use super::cycles::Cycles;
use super::types::{innermost, is_local_interface, is_number, is_reference, made_of, parts};
use super::values::is_abstract;
use crate::tree::{ItemId, ItemKind, Tree, Type};

/// The properties of the types of a tree.
///
/// Each is a search from the types that lack the property themselves to the types that contain those. It follows each use of a
/// type once, so that the work grows with the length of the IDL, however deeply types are nested.
#[derive(Debug)]
pub(super) struct Layouts {
    not_copy: Vec<Option<ItemId>>,
    not_fixed: Vec<Option<ItemId>>,
    not_eq: Vec<Option<ItemId>>,
    not_hash: Vec<Option<ItemId>>,
    not_plain: Vec<Option<ItemId>>,
    with_text: Vec<Option<ItemId>>,
    kept_inside: Vec<Option<ItemId>>,
    has_default: Vec<bool>,
    /// Which types contain each other.
    pub(super) cycles: Cycles,
}

impl Layouts {
    pub(super) fn of(tree: &Tree) -> Self {
        let users = Users::of(tree);
        let contains = |id: ItemId, excluded: &[Type]| {
            let mut parts = parts(&tree.item(id).kind).into_iter();
            // The enum of an abstract valuetype derives neither.
            parts.any(|part| match innermost(part) {
                Type::ValueBase => true,
                Type::Named(id) => is_abstract(tree, *id),
                ty => excluded.contains(ty),
            })
        };
        let unequal = [Type::Float, Type::Double, Type::Any];
        let unhashed = [Type::Float, Type::Double, Type::Any, Type::TypeCode];
        let of_an_orb = [Type::Object, Type::Any];
        let cycles = Cycles::of(tree);
        let lengths = lengths(tree, &cycles);
        let is_fixed =
            |id: ItemId| is_fixed_itself(tree, id) && lengths[id.0 as usize] <= FIXED_MEMBERS_MAX;
        Self {
            not_copy: users.reached_from(|id| !is_copy_itself(tree, id)),
            not_fixed: users.reached_from(|id| !is_fixed(id)),
            not_eq: users.reached_from(|id| contains(id, &unequal)),
            not_hash: users.reached_from(|id| contains(id, &unhashed)),
            not_plain: users.reached_from(|id| {
                let kind = &tree.item(id).kind;
                is_reference(kind) || matches!(kind, ItemKind::Native) || contains(id, &of_an_orb)
            }),
            with_text: users.reached_from(|id| has_text_itself(&tree.item(id).kind)),
            has_default: defaults(tree, &cycles),
            cycles,
            kept_inside: users.reached_from(|id| {
                is_local_interface(tree, id) || matches!(tree.item(id).kind, ItemKind::Native)
            }),
        }
    }

    /// True if a value of the type is the same for a client and a servant of one ORB: no reference, valuetype, any or native type is
    /// inside it. Marshalling gives a reference the policies of the receiver, and makes a copy of a valuetype.
    pub(super) fn is_plain(&self, ty: &Type) -> bool {
        match ty {
            Type::Object | Type::ValueBase | Type::Any => false,
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.is_plain(element),
            Type::Map { key, value, .. } => self.is_plain(key) && self.is_plain(value),
            Type::Named(id) => self.not_plain[id.0 as usize].is_none(),
            _ => true,
        }
    }

    /// True if values of the type may contain characters, which the code set of a connection may not have.
    pub(super) fn has_text(&self, ty: &Type) -> bool {
        match ty {
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.has_text(element),
            Type::Map { key, value, .. } => self.has_text(key) || self.has_text(value),
            Type::Named(id) => self.with_text[id.0 as usize].is_some(),
            ty => is_text_itself(ty),
        }
    }

    /// True if the generated type `id` is `Copy`.
    pub(super) fn is_copy(&self, id: ItemId) -> bool {
        self.not_copy[id.0 as usize].is_none()
    }

    /// True if all values of the type `id` have the same size and alignment on the wire: it implements `FixedLayout`.
    pub(super) fn has_fixed_layout(&self, id: ItemId) -> bool {
        self.not_fixed[id.0 as usize].is_none()
    }

    /// True if the generated type `id` implements `Eq`: every type inside it does.
    ///
    /// A recursive type needs no special case: its impls have no bounds, so each type inside it may rely on the others.
    pub(super) fn is_eq(&self, id: ItemId) -> bool {
        self.not_eq[id.0 as usize].is_none()
    }

    /// True if the generated type `id` implements `Hash`: every type inside it does.
    pub(super) fn is_hash(&self, id: ItemId) -> bool {
        self.not_hash[id.0 as usize].is_none()
    }

    /// True if the generated type `id` implements `Default`: an enum, a bitmask, a bitset, and a struct of which every member has a
    /// default. A union has none, because IDL names no default member.
    pub(super) fn has_default(&self, id: ItemId) -> bool {
        self.has_default[id.0 as usize]
    }

    /// The local interface or native type inside the type `id`, if there is one. It keeps values of `id` inside the process.
    pub(super) fn kept_inside_by(&self, id: ItemId) -> Option<ItemId> {
        self.kept_inside[id.0 as usize]
    }
}

/// For each item the items that contain it.
struct Users(Vec<Vec<ItemId>>);

impl Users {
    fn of(tree: &Tree) -> Self {
        let mut users = vec![Vec::new(); tree.items.len()];
        for id in tree.ids() {
            for part in made_of(&tree.item(id).kind) {
                users[part.0 as usize].push(id);
            }
        }
        Self(users)
    }

    /// The items that are a source or contain one, each with such a source.
    fn reached_from(&self, is_source: impl Fn(ItemId) -> bool) -> Vec<Option<ItemId>> {
        let mut reached = vec![None; self.0.len()];
        let mut pending = VecDeque::new();
        let count = u32::try_from(self.0.len()).expect("an item's id is 32 bits");
        for id in (0..count).map(ItemId).filter(|&id| is_source(id)) {
            reached[id.0 as usize] = Some(id);
            pending.push_back(id);
        }
        while let Some(id) = pending.pop_front() {
            let source = reached[id.0 as usize];
            for &user in &self.0[id.0 as usize] {
                let entry = &mut reached[user.0 as usize];
                if entry.is_none() {
                    *entry = source;
                    pending.push_back(user);
                }
            }
        }
        reached
    }
}

/// True unless the type `id` is not `Copy` whatever the declared types inside it are.
fn is_copy_itself(tree: &Tree, id: ItemId) -> bool {
    let kind = &tree.item(id).kind;
    let copyable = |part: &Type| match array_element(part) {
        Type::Fixed { .. } | Type::Char | Type::WChar | Type::LongDouble | Type::Named(_) => true,
        ty => is_number(ty),
    };
    match kind {
        ItemKind::Enum { .. } | ItemKind::Bitmask(_) | ItemKind::Bitset(_) => true,
        ItemKind::Struct { .. }
        | ItemKind::Exception { .. }
        | ItemKind::Union(_)
        | ItemKind::Alias { .. } => parts(kind).into_iter().all(copyable),
        _ => false,
    }
}

/// True if values of the type contain characters beside those of the named types inside it.
fn has_text_itself(kind: &ItemKind) -> bool {
    match kind {
        // A value may be of a derived type, whose members are not known here.
        ItemKind::Valuetype(_) => true,
        ItemKind::Union(union) if is_text_itself(&union.discriminator) => true,
        kind => parts(kind)
            .into_iter()
            .any(|part| is_text_itself(innermost(part))),
    }
}

/// True for characters, strings, and what may contain them although its type does not say so.
fn is_text_itself(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Char
            | Type::WChar
            | Type::String { .. }
            | Type::WString { .. }
            | Type::Any
            | Type::ValueBase
    )
}

/// True unless the type `id` has no fixed layout whatever the declared types inside it are.
fn is_fixed_itself(tree: &Tree, id: ItemId) -> bool {
    let kind = &tree.item(id).kind;
    let fixed = |part: &Type| match array_element(part) {
        Type::Named(_) => true,
        ty => is_number(ty),
    };
    match kind {
        ItemKind::Enum { .. } | ItemKind::Bitmask(_) | ItemKind::Bitset(_) => true,
        ItemKind::Struct { members } => {
            !members.is_empty()
                && members
                    .iter()
                    .all(|member| !member.is_optional && fixed(&member.ty))
        }
        ItemKind::Alias { ty } => fixed(ty),
        _ => false,
    }
}

/// The most members of a type of fixed layout, those of the types inside it included. rustc inlines the code of all of them.
const FIXED_MEMBERS_MAX: u32 = 512;

/// For each type the number of its members, those of the types inside it included. An array counts as one element.
fn lengths(tree: &Tree, cycles: &Cycles) -> Vec<u32> {
    let mut lengths = vec![0u32; tree.items.len()];
    for &id in cycles.parts_first() {
        let parts = parts(&tree.item(id).kind).into_iter();
        let length = parts.fold(0u32, |sum, part| {
            let inside = match array_element(part) {
                Type::Named(id) => lengths[id.0 as usize].max(1),
                _ => 1,
            };
            sum.saturating_add(inside)
        });
        lengths[id.0 as usize] = length;
    }
    lengths
}

/// For each type whether it has a default.
fn defaults(tree: &Tree, cycles: &Cycles) -> Vec<bool> {
    let mut defaults = vec![false; tree.items.len()];
    for &id in cycles.parts_first() {
        let has_default = |ty: &Type| has_default(tree, ty, &defaults);
        defaults[id.0 as usize] = match &tree.item(id).kind {
            ItemKind::Enum { .. } | ItemKind::Bitmask(_) | ItemKind::Bitset(_) => true,
            ItemKind::Alias { ty } => has_default(ty),
            ItemKind::Struct { members } => members
                .iter()
                .all(|member| member.is_optional || has_default(&member.ty)),
            _ => false,
        };
    }
    defaults
}

fn has_default(tree: &Tree, ty: &Type, defaults: &[bool]) -> bool {
    let of = |ty: &Type| has_default(tree, ty, defaults);
    match ty {
        // The standard library has a default for arrays of up to 32 elements.
        Type::Array {
            element,
            dimensions,
        } => dimensions.iter().all(|length| *length <= 32) && of(element),
        Type::Sequence {
            element,
            bound: Some(_),
        } => of(element),
        Type::Map {
            key,
            value,
            bound: Some(_),
        } => of(key) && of(value),
        Type::Named(id) => is_reference(&tree.item(*id).kind) || defaults[id.0 as usize],
        Type::TypeCode => false,
        _ => true,
    }
}

/// The type of the elements behind arrays.
fn array_element(ty: &Type) -> &Type {
    match ty {
        Type::Array { element, .. } => array_element(element),
        ty => ty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    /// Structs in which each has the one before it twice, so that the last one contains 2 to the power of `levels` members.
    fn nested(levels: usize, innermost: &str) -> Tree {
        let mut text = format!("struct S0 {{ {innermost} a; }};");
        for level in 1..levels {
            let inner = level - 1;
            text.push_str(&format!("struct S{level} {{ S{inner} a, b; }};"));
        }
        let outcome = crate::check_text("nested.idl", &text, &Options::default());
        outcome.tree.expect("the text is right")
    }

    #[test]
    fn properties_go_through_any_depth_of_nesting() {
        for (innermost, copy, fixed, eq, hash, default) in [
            ("long", true, false, true, true, true),
            ("char", true, false, true, true, true),
            ("double", true, false, false, false, true),
            ("CORBA::TypeCode", false, false, true, false, false),
            ("string", false, false, true, true, true),
        ] {
            let tree = nested(100, innermost);
            let layouts = Layouts::of(&tree);
            let outermost = *tree.roots.last().expect("100 structs");
            assert_eq!(layouts.is_copy(outermost), copy, "{innermost}");
            assert_eq!(layouts.has_fixed_layout(outermost), fixed, "{innermost}");
            assert_eq!(layouts.is_eq(outermost), eq, "{innermost}");
            assert_eq!(layouts.is_hash(outermost), hash, "{innermost}");
            assert_eq!(layouts.has_default(outermost), default, "{innermost}");
            assert_eq!(layouts.kept_inside_by(outermost), None);
        }
    }

    #[test]
    fn a_struct_has_a_default_if_each_of_its_members_has_one() {
        let declared = "enum E { a, b }; union U switch (long) { case 1: long l; }; interface I {}; struct S { U u; };";
        for (member, expected) in [
            ("E e", true),
            ("I i, j", true),
            ("any a", true),
            ("U u", false),
            ("S s", false),
            ("@optional S s", true),
            ("sequence<S> s", true),
            ("sequence<S, 3> s", false),
            ("sequence<E, 3> e", true),
            ("sequence<T> t", true),
            ("octet a[4][32]", true),
            ("octet a[33]", false),
            ("S a[2]", false),
        ] {
            let text = format!("{declared} struct T; struct T {{ {member}; }};");
            let outcome = crate::check_text("default.idl", &text, &Options::default());
            let tree = outcome.tree.expect("the text is right");
            let last = *tree.roots.last().expect("the struct T");
            assert_eq!(Layouts::of(&tree).has_default(last), expected, "{member}");
        }
    }

    #[test]
    fn a_fixed_layout_has_a_bounded_number_of_members() {
        let tree = nested(11, "long");
        let layouts = Layouts::of(&tree);
        let fixed = |level: usize| layouts.has_fixed_layout(tree.roots[level]);
        assert!(fixed(0) && fixed(9), "512 members");
        assert!(!fixed(10), "1024 members");
    }

    #[test]
    fn each_use_of_a_type_is_followed_once() {
        let tree = nested(100, "long");
        let users = Users::of(&tree);
        let uses: usize = users.0.iter().map(Vec::len).sum();
        assert_eq!(uses, 2 * 99, "two members of each struct but the first");
        let asked = std::cell::Cell::new(0);
        let reached = users.reached_from(|id| {
            asked.set(asked.get() + 1);
            id == tree.roots[0]
        });
        assert_eq!(asked.get(), 100);
        assert!(reached.iter().all(|source| *source == Some(tree.roots[0])));
    }
}

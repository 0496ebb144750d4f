//! Bitmasks and bitsets (IDL 4.2, 7.4.13).

use crate::ast::{self, Name, Preamble, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::tree::{BitField, Bitmask, Bitset, Flag, ItemId, ItemKind, Type};

use super::Checker;
use super::annotations::{BIT_BOUND, POSITION};
use super::scopes::Entity;

impl Checker<'_> {
    pub(super) fn bitmask(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        written: &[ast::EnumeratorDcl],
    ) -> Option<ItemId> {
        let bits = self.annotated_number(&preamble.annotations, BIT_BOUND, 1..=BITS_MAX);
        let bits = bits.unwrap_or(BIT_BOUND_DEFAULT);
        let kind = ItemKind::Bitmask(Bitmask::default());
        let id = self.declare_item(preamble, name, kind)?;
        let flags = self.within(Some(id), |checker| checker.flags(written, bits));
        self.item_mut(id).kind = ItemKind::Bitmask(Bitmask {
            holder: Type::unsigned(bits),
            flags,
        });
        Some(id)
    }

    /// The flags of a bitmask. The position of a flag without an annotation is that of the flag before it plus one.
    fn flags(&mut self, written: &[ast::EnumeratorDcl], bits: u32) -> Vec<Flag> {
        let mut flags: Vec<Flag> = Vec::new();
        for ast::EnumeratorDcl { preamble, declared } in written {
            self.declare(declared, Entity::Other("a flag"));
            let last = bits - 1;
            let stated = self.annotated_number(&preamble.annotations, POSITION, 0..=last);
            let next = flags.last().map_or(0, |before| before.position + 1);
            let position = stated.unwrap_or(next);
            let text = &declared.text;
            if position > last {
                let message = format!("the flag `{text}` has no bit");
                let label = format!("would be bit {position}, and bit {last} is the last");
                let diagnostic = Diagnostic::error(message)
                    .at(declared.location, label)
                    .help("write `@bit_bound(64)` before the bitmask for up to 64 flags");
                self.diagnostics.push(diagnostic);
                break;
            }
            if let Some(first) = flags.iter().find(|flag| flag.position == position) {
                let message = format!("the flags `{}` and `{text}` are one bit", first.name);
                let diagnostic = Diagnostic::error(message)
                    .at(declared.location, format!("this is bit {position}, too"))
                    .at(first.location, format!("this is bit {position}"));
                self.diagnostics.push(diagnostic);
            }
            flags.push(Flag {
                name: text.clone(),
                location: declared.location,
                documentation: preamble.documentation.clone(),
                annotations: preamble.annotations.clone(),
                position,
            });
        }
        flags
    }

    pub(super) fn bitset(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        base: Option<&ScopedName>,
        written: &[ast::Documented<ast::BitFieldDcl>],
    ) -> Option<ItemId> {
        let base = base.and_then(|base| self.base_bitset(base));
        let kind = ItemKind::Bitset(Bitset::default());
        let id = self.declare_item(preamble, name, kind)?;
        let mut set = base.unwrap_or_default();
        self.within(Some(id), |checker| {
            for field in &set.fields {
                let name = Name {
                    text: field.name.clone(),
                    location: field.location,
                };
                checker.declare(&name, Entity::Other("an inherited bit field"));
            }
            for fields in written {
                checker.bit_fields(fields, &mut set);
            }
        });
        let problem = match set.width {
            0 if !written.is_empty() => None,
            0 => Some("it has no fields".to_owned()),
            1..=BITS_MAX => None,
            width => Some(format!("it has {width} bits")),
        };
        if let Some(problem) = problem {
            let message = format!("a bitset has 1 to {BITS_MAX} bits");
            self.error(name.location, message, problem);
        }
        set.holder = Type::unsigned(set.width);
        self.item_mut(id).kind = ItemKind::Bitset(set);
        Some(id)
    }

    fn base_bitset(&mut self, base: &ScopedName) -> Option<Bitset> {
        let entity = self.lookup(base)?;
        let id = self.behind_aliases(entity);
        if let Some(ItemKind::Bitset(set)) = id.map(|id| &self.tree.item(id).kind) {
            return Some(set.clone());
        }
        let problem = "cannot be the base of a bitset";
        self.unfit(base, entity, problem, "a bitset");
        None
    }

    /// Appends fields that are declared together. The first field has the least significant bits.
    fn bit_fields(&mut self, declared: &ast::Documented<ast::BitFieldDcl>, set: &mut Bitset) {
        let ast::Documented { preamble, declared } = declared;
        let width = self.size(&declared.width, "the width of the field");
        if let Some(width) = width.filter(|&width| width > BITS_MAX) {
            let message = format!("a bit field has at most {BITS_MAX} bits");
            let label = format!("this is {width}");
            self.error(declared.width.location, message, label);
        }
        let width = width.filter(|&width| width <= BITS_MAX);
        let ty = match (&declared.ty, width) {
            (Some(spec), _) => self.bit_field_type(spec, width),
            (None, Some(1)) => Some(Type::Boolean),
            (None, width) => width.map(Type::unsigned),
        };
        for name in &declared.names {
            self.declare(&name.declared, Entity::Other("a bit field"));
            if let (Some(width), Some(ty)) = (width, &ty) {
                let own = &name.preamble;
                set.fields.push(BitField {
                    name: name.declared.text.clone(),
                    location: name.declared.location,
                    documentation: [&*preamble.documentation, &own.documentation].concat(),
                    annotations: [&*preamble.annotations, &own.annotations].concat(),
                    ty: ty.clone(),
                    offset: set.width,
                    width,
                });
                set.width = set.width.saturating_add(width);
            }
        }
        if declared.names.is_empty() {
            set.width = set.width.saturating_add(width.unwrap_or(0));
        }
    }

    /// The type of the values of a field: boolean or an integer with at least `width` bits.
    fn bit_field_type(&mut self, spec: &ast::TypeSpec, width: Option<u32>) -> Option<Type> {
        let ty = self.type_of(spec)?;
        let ty = self.tree.resolved(&ty).clone();
        let Some(bits) = ty.bits() else {
            let message = "a bit field cannot have this type";
            self.error(
                spec.location,
                message,
                "expected `boolean` or an integer type",
            );
            return None;
        };
        if let Some(width) = width.filter(|&width| width > bits) {
            let message = "the type of the bit field is too small";
            let label = format!("has {bits} of {width} bits");
            self.error(spec.location, message, label);
            return None;
        }
        Some(ty)
    }
}

/// The bits of a bitmask without `@bit_bound`.
const BIT_BOUND_DEFAULT: u32 = 32;
/// The most bits of a bitmask, a bitset and a field: CDR has no longer integer.
const BITS_MAX: u32 = 64;

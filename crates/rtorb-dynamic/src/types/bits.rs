//! The names of the bits of bitmasks and bitsets. Their TypeCodes are aliases of integers, which have no names of bits.

use rtorb_idl::tree::{self, ItemKind, Type};

/// The names of the bits of an integer.
#[derive(Clone, Debug)]
pub(crate) enum Bits {
    /// The flags of a bitmask.
    Mask(Vec<Flag>),
    /// The fields of a bitset.
    Set(Vec<Field>),
}

/// A flag of a bitmask.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    pub(crate) name: String,
    /// The number in which only the bit of the flag is set.
    pub(crate) bit: u64,
}

/// A field of a bitset.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) width: u32,
    pub(crate) form: FieldForm,
}

/// The form of the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldForm {
    Boolean,
    Unsigned,
    Signed,
}

impl Bits {
    /// The names of the bits of a bitmask or bitset; `None` for other declarations.
    pub(super) fn of(kind: &ItemKind) -> Option<Self> {
        match kind {
            ItemKind::Bitmask(mask) => {
                let flags = mask.flags.iter().map(|flag| Flag {
                    name: flag.name.clone(),
                    bit: 1 << flag.position,
                });
                Some(Self::Mask(flags.collect()))
            }
            ItemKind::Bitset(set) => Some(Self::Set(set.fields.iter().map(field).collect())),
            _ => None,
        }
    }
}

fn field(field: &tree::BitField) -> Field {
    let form = match field.ty {
        Type::Boolean => FieldForm::Boolean,
        Type::Int8 | Type::Short | Type::Long | Type::LongLong => FieldForm::Signed,
        _ => FieldForm::Unsigned,
    };
    Field {
        name: field.name.clone(),
        offset: field.offset,
        width: field.width,
        form,
    }
}

impl Field {
    /// The bits of the field in the integer.
    pub(crate) const fn bits(&self) -> u64 {
        (u64::MAX >> (u64::BITS - self.width)) << self.offset
    }
}

//! The structure of types.

use super::{Kind, TypeCode};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The structure of a type.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A kind without parameters.
    Plain(Kind),
    /// `string`
    String {
        /// The most characters; 0 for no bound.
        bound: u32,
    },
    /// `wstring`
    WString {
        /// The most characters; 0 for no bound.
        bound: u32,
    },
    /// `fixed`
    Fixed {
        /// The number of digits.
        digits: u16,
        /// The number of digits behind the point.
        scale: i16,
    },
    /// `sequence`. Its count is the bound, 0 for none.
    Sequence(Arc<Elements>),
    /// An array. Its count is the length.
    Array(Arc<Elements>),
    /// `struct`
    Struct(Arc<Aggregate>),
    /// `exception`
    Except(Arc<Aggregate>),
    /// `union`
    Union(Arc<Union>),
    /// `enum`
    Enum(Arc<Enumeration>),
    /// `typedef`
    Alias(Arc<Alias>),
    /// A boxed value.
    ValueBox(Arc<Alias>),
    /// `valuetype`
    Value(Arc<ValueAggregate>),
    /// `eventtype`
    Event(Arc<ValueAggregate>),
    /// A type with only an id and a name: interfaces, `native`, components and homes.
    Named(Kind, Arc<Named>),
    /// The enclosing type with that repository id.
    Recursive(Arc<str>),
}

impl Shape {
    pub(super) fn named(&self) -> Option<&Named> {
        Some(match self {
            Self::Struct(aggregate) | Self::Except(aggregate) => &aggregate.named,
            Self::Union(union) => &union.named,
            Self::Enum(enumeration) => &enumeration.named,
            Self::Alias(alias) | Self::ValueBox(alias) => &alias.named,
            Self::Value(value) | Self::Event(value) => &value.named,
            Self::Named(_, named) => named,
            _ => return None,
        })
    }

    /// The bytes of the ids and names of the type, without those in the types inside it.
    pub(super) fn text_bytes(&self) -> usize {
        let named = self.named().map_or(0, |it| it.id.len() + it.name.len());
        let members: usize = match self {
            Self::Struct(made) | Self::Except(made) => {
                made.members.iter().map(|it| it.name.len()).sum()
            }
            Self::Union(union) => union.members.iter().map(|it| it.name.len()).sum(),
            Self::Value(value) | Self::Event(value) => {
                value.members.iter().map(|it| it.name.len()).sum()
            }
            _ => 0,
        };
        named + members
    }

    /// The same type with what `part` returns in the place of each type inside it.
    ///
    /// # Errors
    /// The error of `part`.
    pub(super) fn with_parts<E>(
        &self,
        part: &mut impl FnMut(&TypeCode) -> Result<TypeCode, E>,
    ) -> Result<Self, E> {
        let mut shape = self.clone();
        match &mut shape {
            Self::Sequence(elements) | Self::Array(elements) => {
                let elements = Arc::make_mut(elements);
                elements.element = part(&elements.element)?;
            }
            Self::Struct(made) | Self::Except(made) => {
                for member in &mut Arc::make_mut(made).members {
                    member.type_code = part(&member.type_code)?;
                }
            }
            Self::Union(union) => {
                let union = Arc::make_mut(union);
                union.discriminator = part(&union.discriminator)?;
                for member in &mut union.members {
                    member.type_code = part(&member.type_code)?;
                }
            }
            Self::Alias(alias) | Self::ValueBox(alias) => {
                let alias = Arc::make_mut(alias);
                alias.content = part(&alias.content)?;
            }
            Self::Value(value) | Self::Event(value) => {
                let value = Arc::make_mut(value);
                value.base = part(&value.base)?;
                for member in &mut value.members {
                    member.type_code = part(&member.type_code)?;
                }
            }
            _ => {}
        }
        Ok(shape)
    }
}

/// A repository id and a name. Either may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Repository id.
    pub id: Box<str>,
    /// Name in its scope.
    pub name: Box<str>,
}

impl Named {
    /// A repository id and a name with these texts.
    pub fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
        }
    }
}

/// The elements of a sequence or array.
#[derive(Clone, Debug)]
pub struct Elements {
    /// The type of each.
    pub element: TypeCode,
    /// The bound or length.
    pub count: u32,
}

/// A member of a struct or exception.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name; may be empty.
    pub name: Box<str>,
    /// Its type.
    pub type_code: TypeCode,
}

/// A struct or exception.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// The id and name.
    pub named: Named,
    /// The members in order.
    pub members: Box<[Member]>,
}

impl Aggregate {
    pub(super) fn named<'s>(
        id: &str,
        name: &str,
        members: impl IntoIterator<Item = (&'s str, TypeCode)>,
    ) -> Self {
        let members = members.into_iter().map(|(name, type_code)| Member {
            name: name.into(),
            type_code,
        });
        Self {
            named: Named::new(id, name),
            members: members.collect(),
        }
    }
}

/// A value of a union's discriminator: a number, the ordinal of an enumerator, the code of a character, or 0 and 1 for
/// a boolean. An `unsigned long long` beyond the range keeps its bits.
pub type Label = i64;

/// A member of a union under one of its labels.
#[derive(Clone, Debug)]
pub struct UnionMember {
    /// The value of the discriminator that selects it.
    pub label: Label,
    /// Its name; may be empty.
    pub name: Box<str>,
    /// Its type.
    pub type_code: TypeCode,
}

/// A union.
#[derive(Clone, Debug)]
pub struct Union {
    /// The id and name.
    pub named: Named,
    /// The type of the discriminator.
    pub discriminator: TypeCode,
    /// The index of the default member.
    pub default: Option<u32>,
    /// The members in order, once for each label.
    pub members: Box<[UnionMember]>,
    /// The labels, sorted, with the member that each selects, so that a hostile type cannot make lookups slow.
    by_label: Box<[(Label, u32)]>,
}

impl Union {
    /// A union of these members. If two have the same label, the discriminator selects the first.
    pub fn new(
        named: Named,
        discriminator: TypeCode,
        default: Option<u32>,
        members: Box<[UnionMember]>,
    ) -> Self {
        let mut by_label: Vec<_> = (0u32..)
            .zip(&members)
            .filter(|(index, _)| Some(*index) != default)
            .map(|(index, member)| (member.label, index))
            .collect();
        by_label.sort_unstable();
        by_label.dedup_by_key(|(label, _)| *label);
        Self {
            named,
            discriminator,
            default,
            members,
            by_label: by_label.into(),
        }
    }

    /// The member that a discriminator selects, if any.
    //= GIOP 1.2 §15.3.2.3
    //# A union is its discriminator and the member that it selects; nothing follows if there is none.
    pub fn select(&self, label: Label) -> Option<&UnionMember> {
        let index = match self.by_label.binary_search_by_key(&label, |entry| entry.0) {
            Ok(found) => self.by_label[found].1,
            Err(_) => self.default?,
        };
        self.members.get(index as usize)
    }
}

/// An enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// The id and name.
    pub named: Named,
    /// The names in order; may be empty.
    pub enumerators: Box<[Box<str>]>,
}

/// A typedef or a boxed value.
#[derive(Clone, Debug)]
pub struct Alias {
    /// The id and name.
    pub named: Named,
    /// The type that it stands for, or boxes.
    pub content: TypeCode,
}

/// The visibility of a member of a valuetype.
#[repr(i16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Visible to the implementation.
    Private = 0,
    /// Visible to all.
    Public = 1,
}

/// A member of a valuetype.
#[derive(Clone, Debug)]
pub struct ValueMember {
    /// Its name; may be empty.
    pub name: Box<str>,
    /// Its type.
    pub type_code: TypeCode,
    /// Its visibility.
    pub visibility: Visibility,
}

/// A valuetype or eventtype.
#[derive(Clone, Debug)]
pub struct ValueAggregate {
    /// The id and name.
    pub named: Named,
    /// 0 none, 1 custom, 2 abstract, 3 truncatable.
    pub modifier: i16,
    /// The concrete base, or [`TypeCode::NULL`].
    pub base: TypeCode,
    /// The members in order.
    pub members: Box<[ValueMember]>,
}

/// The properties of a type and all types inside it, computed when the type is constructed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    /// The number of types in it, each counted as often as it occurs.
    pub(crate) nodes: u32,
    /// The nesting depth, itself included.
    pub(crate) depth: u32,
    /// The largest alignment in it.
    pub(crate) alignment: u8,
    /// True if the bytes of a value depend on code sets or on the GIOP version.
    pub(crate) text: bool,
    /// True if values have no bytes.
    pub(crate) empty: bool,
    /// True if any bytes of the right length are a value: numbers, and structs and arrays of them.
    pub(crate) fixed: bool,
}

impl Summary {
    pub(super) fn of(shape: &Shape) -> Self {
        match shape {
            Shape::Plain(kind) => Self::of_plain(*kind),
            Shape::String { .. } | Shape::WString { .. } | Shape::Named(..) => Self::leaf(4, true),
            Shape::Fixed { .. } => Self::leaf(1, false),
            // An unsigned long counts the elements.
            Shape::Sequence(elements) => Self::leaf(4, false).with(&elements.element),
            Shape::Array(elements) => Self {
                empty: false,
                ..Self::EMPTY.with(&elements.element)
            },
            Shape::Struct(aggregate) => Self::of_members(&aggregate.members),
            // Its value begins with its repository id.
            Shape::Except(aggregate) => Self::of_members(&aggregate.members).with_text(),
            Shape::Union(union) => {
                let types = union.members.iter().map(|member| &member.type_code);
                Self {
                    fixed: false,
                    ..types.fold(Self::EMPTY.with(&union.discriminator), Self::with)
                }
            }
            Shape::Enum(_) => Self::leaf(4, false),
            Shape::Alias(alias) => Self::EMPTY.with(&alias.content),
            Shape::ValueBox(alias) => Self::EMPTY.with(&alias.content).with_text(),
            Shape::Value(value) | Shape::Event(value) => {
                let types = value.members.iter().map(|member| &member.type_code);
                types
                    .fold(Self::EMPTY.with(&value.base), Self::with)
                    .with_text()
            }
            // The enclosing type, for which it stands, has its properties already.
            Shape::Recursive(_) => Self::leaf(1, false),
        }
    }

    fn of_members(members: &[Member]) -> Self {
        let types = members.iter().map(|member| &member.type_code);
        types.fold(Self::EMPTY, Self::with)
    }

    const EMPTY: Self = Self {
        nodes: 1,
        depth: 1,
        alignment: 1,
        text: false,
        empty: true,
        fixed: true,
    };

    pub(super) const fn leaf(alignment: u8, text: bool) -> Self {
        Self {
            nodes: 1,
            depth: 1,
            alignment,
            text,
            empty: false,
            fixed: false,
        }
    }

    const fn number(alignment: u8) -> Self {
        Self {
            fixed: true,
            ..Self::leaf(alignment, false)
        }
    }

    pub(super) const fn of_plain(kind: Kind) -> Self {
        match kind {
            Kind::Null | Kind::Void => Self::EMPTY,
            Kind::Boolean | Kind::Octet => Self::number(1),
            Kind::Short | Kind::UShort => Self::number(2),
            Kind::Long | Kind::ULong | Kind::Float => Self::number(4),
            Kind::Double | Kind::LongLong | Kind::ULongLong | Kind::LongDouble => Self::number(8),
            Kind::Principal => Self::leaf(4, false),
            Kind::Char | Kind::WChar => Self::leaf(1, true),
            // An any or a TypeCode may contain every type.
            _ => Self::leaf(8, true),
        }
    }

    fn with_text(self) -> Self {
        Self {
            alignment: self.alignment.max(4),
            text: true,
            empty: false,
            fixed: false,
            ..self
        }
    }

    fn with(self, inner: &TypeCode) -> Self {
        let inner = inner.summary;
        Self {
            nodes: self.nodes.saturating_add(inner.nodes),
            depth: self.depth.max(inner.depth.saturating_add(1)),
            alignment: self.alignment.max(inner.alignment),
            text: self.text | inner.text,
            empty: self.empty & inner.empty,
            fixed: self.fixed & inner.fixed,
        }
    }
}

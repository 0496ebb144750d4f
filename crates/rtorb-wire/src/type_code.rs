//! TypeCodes: IDL types as values (CORBA 3 §10.7, GIOP 1.2 §15.3.5.1).

mod cdr;
mod compare;
mod kind;
mod scope;
mod shape;
mod text;

pub(crate) use cdr::{read_label, write_label};
pub use kind::Kind;
pub use scope::Scope;
pub use shape::{
    Aggregate, Alias, Elements, Enumeration, Label, Member, Named, Shape, Union, UnionMember,
    ValueAggregate, ValueMember, Visibility,
};

use shape::Summary;

/// The description of an IDL type. It is cheap to clone.
///
/// A type that contains itself has [`TypeCode::recursive`] inside, which names the enclosing type by its repository id.
#[derive(Clone)]
pub struct TypeCode {
    shape: Shape,
    summary: Summary,
}

macro_rules! plain {
    ($($(#[$doc:meta])* $constant:ident = $kind:ident;)*) => {
        /// The types that have no parameters.
        impl TypeCode {
            $($(#[$doc])* pub const $constant: Self = Self {
                shape: Shape::Plain(Kind::$kind),
                summary: Summary::of_plain(Kind::$kind),
            };)*
        }
    };
}

plain! {
    /// `null`, the type of an empty any.
    NULL = Null;
    /// `void`
    VOID = Void;
    /// `short`
    SHORT = Short;
    /// `long`
    LONG = Long;
    /// `unsigned short`
    USHORT = UShort;
    /// `unsigned long`
    ULONG = ULong;
    /// `float`
    FLOAT = Float;
    /// `double`
    DOUBLE = Double;
    /// `boolean`
    BOOLEAN = Boolean;
    /// `char`
    CHAR = Char;
    /// `octet`
    OCTET = Octet;
    /// `any`
    ANY = Any;
    /// `TypeCode`
    TYPE_CODE = TypeCode;
    /// `Principal`, which is obsolete.
    PRINCIPAL = Principal;
    /// `long long`
    LONG_LONG = LongLong;
    /// `unsigned long long`
    ULONG_LONG = ULongLong;
    /// `long double`
    LONG_DOUBLE = LongDouble;
    /// `wchar`
    WCHAR = WChar;
}

/// Types with parameters.
impl TypeCode {
    /// `string`
    pub const STRING: Self = Self::string(0);
    /// `wstring`
    pub const WSTRING: Self = Self::wstring(0);

    /// `string<bound>`; 0 for no bound.
    pub const fn string(bound: u32) -> Self {
        Self::leaf(Shape::String { bound }, 4, true)
    }

    /// `wstring<bound>`; 0 for no bound.
    pub const fn wstring(bound: u32) -> Self {
        Self::leaf(Shape::WString { bound }, 4, true)
    }

    /// `fixed<digits, scale>`
    pub const fn fixed(digits: u16, scale: i16) -> Self {
        Self::leaf(Shape::Fixed { digits, scale }, 1, false)
    }

    /// `sequence<element, bound>`; 0 for no bound.
    pub fn sequence(element: Self, bound: u32) -> Self {
        let count = bound;
        Self::from_shape(Shape::Sequence(Elements { element, count }.into()))
    }

    /// An array of one dimension. More dimensions are arrays of arrays, the outermost first.
    pub fn array(element: Self, length: u32) -> Self {
        let count = length;
        Self::from_shape(Shape::Array(Elements { element, count }.into()))
    }

    /// `struct name { members }`
    pub fn structure<'s>(
        id: &str,
        name: &str,
        members: impl IntoIterator<Item = (&'s str, Self)>,
    ) -> Self {
        Self::from_shape(Shape::Struct(Aggregate::named(id, name, members).into()))
    }

    /// `exception name { members }`
    pub fn exception<'s>(
        id: &str,
        name: &str,
        members: impl IntoIterator<Item = (&'s str, Self)>,
    ) -> Self {
        Self::from_shape(Shape::Except(Aggregate::named(id, name, members).into()))
    }

    /// `union name switch (discriminator) { members }`
    ///
    /// A member with several labels occurs once for each. `default` is the index of the default member, whose label is
    /// ignored.
    pub fn union<'s>(
        id: &str,
        name: &str,
        discriminator: Self,
        default: Option<u32>,
        members: impl IntoIterator<Item = (Label, &'s str, Self)>,
    ) -> Self {
        let members = members
            .into_iter()
            .map(|(label, name, type_code)| UnionMember {
                label,
                name: name.into(),
                type_code,
            });
        let union = Union::new(
            Named::new(id, name),
            discriminator,
            default,
            members.collect(),
        );
        Self::from_shape(Shape::Union(union.into()))
    }

    /// `enum name { enumerators }`
    pub fn enumeration<'s>(
        id: &str,
        name: &str,
        enumerators: impl IntoIterator<Item = &'s str>,
    ) -> Self {
        let named = Named::new(id, name);
        let enumerators = enumerators.into_iter().map(Into::into).collect();
        Self::from_shape(Shape::Enum(Enumeration { named, enumerators }.into()))
    }

    /// `typedef content name`
    pub fn alias(id: &str, name: &str, content: Self) -> Self {
        let named = Named::new(id, name);
        Self::from_shape(Shape::Alias(Alias { named, content }.into()))
    }

    /// References to objects of an interface.
    pub fn object_reference(id: &str, name: &str) -> Self {
        let named = Named::new(id, name);
        Self::from_shape(Shape::Named(Kind::ObjectReference, named.into()))
    }

    /// References to objects, and values, of an abstract interface.
    pub fn abstract_interface(id: &str, name: &str) -> Self {
        let named = Named::new(id, name);
        Self::from_shape(Shape::Named(Kind::AbstractInterface, named.into()))
    }

    /// The enclosing type with that repository id.
    pub fn recursive(id: &str) -> Self {
        Self::from_shape(Shape::Recursive(id.into()))
    }
}

impl TypeCode {
    /// The type with that shape.
    pub fn from_shape(shape: Shape) -> Self {
        let summary = Summary::of(&shape);
        Self { shape, summary }
    }

    const fn leaf(shape: Shape, alignment: u8, text: bool) -> Self {
        let summary = Summary::leaf(alignment, text);
        Self { shape, summary }
    }

    /// The most types in a TypeCode that is sent: more than any real one has, and no more than can be walked through. A received one has at
    /// most 65,536.
    pub const NODES_MAX: u32 = 1 << 20;

    /// The number of types in it, itself included, each counted as often as it occurs; `u32::MAX` for all that are more. Types are shared, so
    /// that few can stand for more than any memory holds.
    pub const fn nodes(&self) -> u32 {
        self.summary.nodes
    }

    /// The most types in each other in it, itself included.
    pub const fn depth(&self) -> u32 {
        self.summary.depth
    }

    /// The properties of the type and all types inside it.
    pub(crate) const fn summary(&self) -> Summary {
        self.summary
    }

    /// The structure of the type.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The kind of the type; [`Kind::Null`] for a recursive type.
    pub fn kind(&self) -> Kind {
        match &self.shape {
            Shape::Plain(kind) | Shape::Named(kind, _) => *kind,
            Shape::String { .. } => Kind::String,
            Shape::WString { .. } => Kind::WString,
            Shape::Fixed { .. } => Kind::Fixed,
            Shape::Sequence(_) => Kind::Sequence,
            Shape::Array(_) => Kind::Array,
            Shape::Struct(_) => Kind::Struct,
            Shape::Except(_) => Kind::Except,
            Shape::Union(_) => Kind::Union,
            Shape::Enum(_) => Kind::Enum,
            Shape::Alias(_) => Kind::Alias,
            Shape::ValueBox(_) => Kind::ValueBox,
            Shape::Value(_) => Kind::Value,
            Shape::Event(_) => Kind::Event,
            Shape::Recursive(_) => Kind::Null,
        }
    }

    /// The repository id, if the kind has one.
    pub fn repository_id(&self) -> Option<&str> {
        match &self.shape {
            Shape::Recursive(id) => Some(id),
            shape => shape.named().map(|named| &*named.id),
        }
    }

    /// The name, if the kind has one.
    pub fn name(&self) -> Option<&str> {
        self.shape.named().map(|named| &*named.name)
    }

    /// The type behind all aliases.
    pub fn unaliased(&self) -> &Self {
        let mut type_code = self;
        while let Shape::Alias(alias) = &type_code.shape {
            type_code = &alias.content;
        }
        type_code
    }
}

//! The checked tree: a specification with every name resolved and every rule checked.
//!
//! The front end creates it, the back ends read it. Items live in one arena and name each other by [`ItemId`], so that
//! recursion and forward declarations need no pointers.

use serde::Serialize;

use crate::source::Location;

/// A whole specification: the file given and all that it includes.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Every item; [`ItemId`] is an index into it.
    pub items: Vec<Item>,
    /// The items of the global scope in the order of their first declaration.
    pub roots: Vec<ItemId>,
}

/// Index of an item in its [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub u32);

/// A declaration that has a name and a repository id.
#[derive(Clone, Debug)]
pub struct Item {
    /// The IDL identifier, without the escaping underscore.
    pub name: String,
    /// The module, interface, valuetype, struct, union or exception it is declared in; `None` at global scope.
    pub scope: Option<ItemId>,
    /// `IDL:prefix/Scope/Name:1.0`, after `#pragma prefix`, `ID` and `version`, `typeid` and `typeprefix`.
    pub repository_id: String,
    /// The comment lines above it, markers removed.
    pub documentation: Vec<String>,
    /// IDL 4 annotations on it, as written.
    pub annotations: Vec<Annotation>,
    /// The place of its name.
    pub location: Location,
    /// False when it comes from an included file.
    pub in_main_file: bool,
    /// The items declared inside it, in the order of their first declaration.
    pub items: Vec<ItemId>,
    /// Its kind and contents.
    pub kind: ItemKind,
}

/// The kind and the contents of an item.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// A module; reopened modules are one item.
    Module,
    /// An interface of any sort.
    Interface(Interface),
    /// A structure.
    Struct {
        /// Members in wire order. Those of an IDL 4 base come first.
        members: Vec<Member>,
    },
    /// A user exception.
    Exception {
        /// Members in wire order.
        members: Vec<Member>,
    },
    /// A discriminated union.
    Union(Union),
    /// An enumeration, its enumerators from 0.
    Enum {
        /// Enumerators in order. The position is the ordinal.
        enumerators: Vec<Enumerator>,
    },
    /// A set of flags (IDL 4).
    Bitmask(Bitmask),
    /// Fields of some bits each in one integer (IDL 4).
    Bitset(Bitset),
    /// A typedef.
    Alias {
        /// The type that it names.
        ty: Type,
    },
    /// A constant.
    Constant {
        /// Its declared type.
        ty: Type,
        /// Its value, already converted to that type.
        value: Value,
    },
    /// A native type.
    Native,
    /// A value box.
    ValueBox {
        /// The boxed type.
        ty: Type,
    },
    /// A valuetype of any sort.
    Valuetype(Valuetype),
    /// A declaration without a definition (legal for interfaces whose references are only passed on).
    Undefined {
        /// `interface`, `abstract interface`, `valuetype`, `component` or `home`; never `struct` or `union`, which must be defined.
        what: &'static str,
    },
    /// A construct of IDL 4 or CCM that is checked but has no CORBA value: component, home, template module.
    Other {
        /// Its name in messages.
        what: &'static str,
    },
}

/// An interface.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// Ordinary, abstract or local.
    pub flavour: InterfaceFlavour,
    /// Direct bases, in order.
    pub bases: Vec<ItemId>,
    /// Its own operations, in order.
    pub operations: Vec<Operation>,
    /// Its own attributes, in order.
    pub attributes: Vec<Attribute>,
}

/// The modifier of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterfaceFlavour {
    /// None.
    #[default]
    Plain,
    /// `abstract`.
    Abstract,
    /// `local`.
    Local,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its name, also on the wire.
    pub name: String,
    /// The place of the name.
    pub location: Location,
    /// The comment lines above it.
    pub documentation: Vec<String>,
    /// Annotations on it.
    pub annotations: Vec<Annotation>,
    /// The timing in the annotations.
    pub timing: Timing,
    /// True if there is no reply.
    pub oneway: bool,
    /// The return type; [`Type::Void`] for none.
    pub returns: Type,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// Exceptions of the `raises` clause.
    pub raises: Vec<ItemId>,
    /// Names of the `context` clause.
    pub context: Vec<String>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its direction.
    pub direction: Direction,
    /// Its name.
    pub name: String,
    /// The place of the name.
    pub location: Location,
    /// Its type.
    pub ty: Type,
    /// Annotations on it.
    pub annotations: Vec<Annotation>,
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the servant.
    In,
    /// From the servant.
    Out,
    /// Both ways.
    InOut,
}

/// An attribute; several declarators make several of these.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name; `_get_name` and `_set_name` go on the wire.
    pub name: String,
    /// The place of the name.
    pub location: Location,
    /// The comment lines above it.
    pub documentation: Vec<String>,
    /// Annotations on it.
    pub annotations: Vec<Annotation>,
    /// The timing in the annotations, for reading and for setting it.
    pub timing: Timing,
    /// True if it cannot be set.
    pub readonly: bool,
    /// Its type.
    pub ty: Type,
    /// Exceptions of reading it (`raises` or `getraises`).
    pub get_raises: Vec<ItemId>,
    /// Exceptions of setting it (`setraises`).
    pub set_raises: Vec<ItemId>,
}

/// A member of a struct, exception or valuetype; several declarators make several of these.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The place of the name.
    pub location: Location,
    /// The comment lines above it.
    pub documentation: Vec<String>,
    /// Annotations on it.
    pub annotations: Vec<Annotation>,
    /// Its type, array dimensions included.
    pub ty: Type,
    /// True for `@optional`: a value may lack the member. Never true in a union.
    pub is_optional: bool,
}

/// A union.
#[derive(Clone, Debug, Default)]
pub struct Union {
    /// An integer, char, wchar, boolean, octet or enum type, aliases kept.
    pub discriminator: Type,
    /// Annotations on the discriminator.
    pub discriminator_annotations: Vec<Annotation>,
    /// Members in order.
    pub cases: Vec<UnionCase>,
    /// True if the labels cover every value of the discriminator.
    pub covers_all: bool,
}

/// A member of a union with its labels.
#[derive(Clone, Debug)]
pub struct UnionCase {
    /// The values that select it, converted to the discriminator's type.
    pub labels: Vec<Value>,
    /// True if `default:` is among its labels.
    pub is_default: bool,
    /// The member.
    pub member: Member,
}

/// A name in an enum.
#[derive(Clone, Debug)]
pub struct Enumerator {
    /// The name.
    pub name: String,
    /// Its place.
    pub location: Location,
    /// The comment lines above it.
    pub documentation: Vec<String>,
    /// Annotations on it.
    pub annotations: Vec<Annotation>,
}

/// A set of flags.
#[derive(Clone, Debug, Default)]
pub struct Bitmask {
    /// The unsigned integer that it is on the wire.
    pub holder: Type,
    /// Flags in order.
    pub flags: Vec<Flag>,
}

/// A flag of a bitmask.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The name.
    pub name: String,
    /// Its place.
    pub location: Location,
    /// The comment lines above it.
    pub documentation: Vec<String>,
    /// Annotations on it.
    pub annotations: Vec<Annotation>,
    /// The number of its bit: 0 is the least significant.
    pub position: u32,
}

/// Fields of some bits each in one integer.
#[derive(Clone, Debug, Default)]
pub struct Bitset {
    /// The unsigned integer that it is on the wire.
    pub holder: Type,
    /// Its bits, those of its base and those without a name included; at most 64.
    pub width: u32,
    /// Fields in order, those of its base first.
    pub fields: Vec<BitField>,
}

/// A field of a bitset.
#[derive(Clone, Debug)]
pub struct BitField {
    /// The name.
    pub name: String,
    /// Its place.
    pub location: Location,
    /// The comment lines above it.
    pub documentation: Vec<String>,
    /// Annotations on it.
    pub annotations: Vec<Annotation>,
    /// The type of its values: boolean or an integer, signed ones in two's complement.
    pub ty: Type,
    /// The number of its least significant bit.
    pub offset: u32,
    /// Its bits; at least 1.
    pub width: u32,
}

/// A valuetype.
#[derive(Clone, Debug, Default)]
pub struct Valuetype {
    /// `abstract valuetype`.
    pub is_abstract: bool,
    /// `custom valuetype`.
    pub is_custom: bool,
    /// `truncatable` before the base.
    pub is_truncatable: bool,
    /// `eventtype` rather than `valuetype`.
    pub is_event: bool,
    /// Base valuetypes, the concrete one first.
    pub bases: Vec<ItemId>,
    /// Interfaces it supports.
    pub supports: Vec<ItemId>,
    /// Its state.
    pub state: Vec<StateMember>,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Its factories.
    pub factories: Vec<Operation>,
}

/// A member of the state of a valuetype.
#[derive(Clone, Debug)]
pub struct StateMember {
    /// True for `public`, false for `private`.
    pub is_public: bool,
    /// The member.
    pub member: Member,
}

/// A type as it is used.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Type {
    /// No value.
    #[default]
    Void,
    /// `short`
    Short,
    /// `unsigned short`
    UShort,
    /// `long`
    Long,
    /// `unsigned long`
    ULong,
    /// `long long`
    LongLong,
    /// `unsigned long long`
    ULongLong,
    /// `int8`
    Int8,
    /// `octet`, `uint8`
    Octet,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `long double`
    LongDouble,
    /// `boolean`
    Boolean,
    /// `char`
    Char,
    /// `wchar`
    WChar,
    /// `string`, `string<N>`
    String {
        /// The most characters, without the terminator.
        bound: Option<u32>,
    },
    /// `wstring`, `wstring<N>`
    WString {
        /// The most characters.
        bound: Option<u32>,
    },
    /// `fixed<D, S>`
    Fixed {
        /// Digits, 1 to 31.
        digits: u16,
        /// Digits after the point, 0 to `digits`.
        scale: u16,
    },
    /// `fixed` of a constant, whose digits follow from the literal.
    FixedConstant,
    /// `sequence<T>`, `sequence<T, N>`
    Sequence {
        /// The element type.
        element: Box<Type>,
        /// The most elements.
        bound: Option<u32>,
    },
    /// An array declarator.
    Array {
        /// The element type.
        element: Box<Type>,
        /// Outermost first, each at least 1.
        dimensions: Vec<u32>,
    },
    /// `map<K, V>` (IDL 4)
    Map {
        /// Key.
        key: Box<Type>,
        /// Value.
        value: Box<Type>,
        /// The most pairs.
        bound: Option<u32>,
    },
    /// `any`
    Any,
    /// `TypeCode`, `CORBA::TypeCode`
    TypeCode,
    /// `Object`
    Object,
    /// `ValueBase`
    ValueBase,
    /// A declared type.
    Named(ItemId),
}

/// The value of a constant or label.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Any integer type and octet.
    Integer(i128),
    /// float, double and long double.
    Float(f64),
    /// A fixed constant.
    Fixed {
        /// The digits as one number.
        unscaled: i128,
        /// The number of digits behind the point.
        scale: u16,
    },
    /// A boolean.
    Boolean(bool),
    /// A char or wchar.
    Char(char),
    /// A string or wstring.
    Text(String),
    /// An enumerator: the enum and the position in it.
    Enumerator(ItemId, u32),
}

/// An IDL 4 annotation as written: `@key`, `@default(value = 3)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The scoped name after the `@`.
    pub name: String,
    /// Its parameters in order.
    pub parameters: Vec<AnnotationParameter>,
    /// Its place.
    pub location: Location,
}

/// A parameter of an annotation, as source text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotationParameter {
    /// Its name; empty if the value stands alone.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The most declared types in a TypeCode that is made from IDL. One that is not in a cycle with those around it counts as one, whatever is in
/// it; a decoder counts all that is in it, and refuses more.
pub const TYPE_CODE_TYPES_MAX: usize = 1 << 16;
/// The most types around a type in a TypeCode that is made from IDL. Our decoder reads 64 levels.
pub const TYPE_CODE_LEVELS_MAX: usize = 128;

/// The annotations that state the requirements of an operation.
pub const TIMING_ANNOTATIONS: [&str; 10] = [
    "worst_case_time",
    "deadline",
    "period",
    "criticality",
    "critical",
    "best_effort",
    "network_priority",
    "largest_message",
    "queue",
    "statistical",
];

/// The timing and the other requirements of an operation, as its annotations state them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// `@worst_case_time`: the longest execution time of one call, in ns; at least 1.
    pub worst_ns: Option<u64>,
    /// `@deadline`: the longest time from the arrival of a call to its end, in ns; at least 1, and not below the worst case.
    pub deadline_ns: Option<u64>,
    /// `@period`: the least time between two calls, in ns; at least 1.
    pub period_ns: Option<u64>,
    /// `@criticality`; very high for `@critical`, very low for `@best_effort`.
    pub criticality: Option<Criticality>,
    /// `@network_priority`: the differentiated services code point of its requests and replies, 0 to 63.
    pub dscp: Option<u8>,
    /// `@largest_message`: the most bytes of a request and of a reply; at least 64.
    pub message_bytes_max: Option<u32>,
    /// `@queue`: the most requests that wait; at least 1.
    pub queue_max: Option<u32>,
    /// `@statistical`: how many calls may be late.
    pub miss_ratio: Option<MissRatio>,
}

/// How many of any calls in succession may miss their deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MissRatio {
    /// The most late calls; at most 64.
    pub misses: u32,
    /// The calls among which they are counted; more than `misses`.
    pub calls: u32,
}

/// The severity of a missed deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Criticality {
    VeryLow,
    Low,
    Medium,
    High,
    VeryHigh,
}

impl Item {
    /// True if it is an [`ItemKind::Other`] called `what`.
    pub(crate) fn is_other(&self, what: &str) -> bool {
        matches!(self.kind, ItemKind::Other { what: own } if own == what)
    }

    /// True for the global module CORBA.
    pub(crate) fn is_module_corba(&self) -> bool {
        self.name == "CORBA" && self.scope.is_none()
    }
}

impl Member {
    /// The type of the member on the wire. CDR has no absent members, so an optional one is a sequence of at most one element.
    pub fn wire_type(&self) -> Type {
        let ty = self.ty.clone();
        if !self.is_optional {
            return ty;
        }
        let (element, bound) = (Box::new(ty), Some(1));
        Type::Sequence { element, bound }
    }
}

impl Valuetype {
    /// The modifier of its TypeCode (CORBA 3, `ValueModifier`): custom, abstract or truncatable; 0 for none.
    pub const fn modifier(&self) -> i16 {
        match self {
            Self {
                is_custom: true, ..
            } => 1,
            Self {
                is_abstract: true, ..
            } => 2,
            Self {
                is_truncatable: true,
                ..
            } => 3,
            _ => 0,
        }
    }
}

impl Type {
    /// True for the integer types, `octet` included.
    pub(crate) fn is_integer(&self) -> bool {
        self.integer_range().is_some()
    }

    /// The smallest unsigned integer with at least `bits` bits, of which there are at most 64.
    pub(crate) const fn unsigned(bits: u32) -> Self {
        match bits {
            0..=8 => Self::Octet,
            9..=16 => Self::UShort,
            17..=32 => Self::ULong,
            _ => Self::ULongLong,
        }
    }

    /// The bits of an integer type; 1 for `boolean`.
    pub(crate) fn bits(&self) -> Option<u32> {
        if *self == Self::Boolean {
            return Some(1);
        }
        let (least, most) = self.integer_range()?;
        Some((most - least).count_ones())
    }

    /// The least and the greatest value of an integer type.
    pub(crate) fn integer_range(&self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Self::Octet => (0, u8::MAX.into()),
            Self::Short => (i16::MIN.into(), i16::MAX.into()),
            Self::UShort => (0, u16::MAX.into()),
            Self::Long => (i32::MIN.into(), i32::MAX.into()),
            Self::ULong => (0, u32::MAX.into()),
            Self::LongLong => (i64::MIN.into(), i64::MAX.into()),
            Self::ULongLong => (0, u64::MAX.into()),
            _ => return None,
        })
    }
}

/// The types of one or more keywords. Of types that begin with the same words, the longest comes first.
pub(crate) static BASIC_TYPES: [(&str, Type); 16] = [
    ("short", Type::Short),
    ("long long", Type::LongLong),
    ("long double", Type::LongDouble),
    ("long", Type::Long),
    ("unsigned short", Type::UShort),
    ("unsigned long long", Type::ULongLong),
    ("unsigned long", Type::ULong),
    ("float", Type::Float),
    ("double", Type::Double),
    ("boolean", Type::Boolean),
    ("char", Type::Char),
    ("wchar", Type::WChar),
    ("octet", Type::Octet),
    ("any", Type::Any),
    ("Object", Type::Object),
    ("ValueBase", Type::ValueBase),
];

impl Timing {
    /// Takes the requirements of the interface, except times, where the operation states none.
    pub(crate) fn inherit(&mut self, interface: Self) {
        self.criticality = self.criticality.or(interface.criticality);
        self.dscp = self.dscp.or(interface.dscp);
        self.message_bytes_max = self.message_bytes_max.or(interface.message_bytes_max);
        self.queue_max = self.queue_max.or(interface.queue_max);
        // Without a deadline, no call is late.
        let ratio = interface.miss_ratio.filter(|_| self.deadline_ns.is_some());
        self.miss_ratio = self.miss_ratio.or(ratio);
    }

    /// True if there is no timing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Criticality {
    /// All values, the lowest first.
    pub const ALL: [Self; 5] = [
        Self::VeryLow,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::VeryHigh,
    ];

    /// Its spelling in IDL: `very-low` to `very-high`.
    pub const fn name(self) -> &'static str {
        ["very-low", "low", "medium", "high", "very-high"][self as usize]
    }
}

impl Tree {
    /// The item behind `id`.
    ///
    /// # Panics
    /// If `id` is of another tree.
    pub fn item(&self, id: ItemId) -> &Item {
        &self.items[id.0 as usize]
    }

    /// The ids of all items.
    pub fn ids(&self) -> impl Iterator<Item = ItemId> + use<> {
        let count = u32::try_from(self.items.len()).expect("an item's id is 32 bits");
        (0..count).map(ItemId)
    }

    /// The name of `id` with its scopes: `CosNaming::NamingContext`.
    pub fn full_name(&self, id: ItemId) -> String {
        let item = self.item(id);
        match item.scope {
            Some(scope) => format!("{}::{}", self.full_name(scope), item.name),
            None => item.name.clone(),
        }
    }

    /// The type that `ty` stands for, with typedefs followed.
    pub fn resolved<'t>(&'t self, ty: &'t Type) -> &'t Type {
        let mut ty = ty;
        while let Type::Named(id) = ty
            && let ItemKind::Alias { ty: aliased } = &self.item(*id).kind
        {
            ty = aliased;
        }
        ty
    }

    /// All interfaces that `interface` inherits from, directly or not, each once, bases before derived interfaces.
    pub fn ancestors(&self, interface: &Interface) -> Vec<ItemId> {
        let mut found = Vec::new();
        self.collect_ancestors(interface, &mut found);
        found
    }

    /// Each interface is visited once, however many ways lead to it; the front end bounds the depth.
    fn collect_ancestors(&self, interface: &Interface, found: &mut Vec<ItemId>) {
        for &base in &interface.bases {
            if let ItemKind::Interface(base_interface) = &self.item(base).kind
                && !found.contains(&base)
            {
                self.collect_ancestors(base_interface, found);
                found.push(base);
            }
        }
    }
}

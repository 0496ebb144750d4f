//! The kinds of types, with their numbers on the wire.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// The kind of a type (`TCKind`).
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// The kind with that number.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Nothing.
    Null = 0,
    /// `void`
    Void = 1,
    /// `short`
    Short = 2,
    /// `long`
    Long = 3,
    /// `unsigned short`
    UShort = 4,
    /// `unsigned long`
    ULong = 5,
    /// `float`
    Float = 6,
    /// `double`
    Double = 7,
    /// `boolean`
    Boolean = 8,
    /// `char`
    Char = 9,
    /// `octet`
    Octet = 10,
    /// `any`
    Any = 11,
    /// `TypeCode`
    TypeCode = 12,
    /// `Principal`
    Principal = 13,
    /// An interface.
    ObjectReference = 14,
    /// `struct`
    Struct = 15,
    /// `union`
    Union = 16,
    /// `enum`
    Enum = 17,
    /// `string`
    String = 18,
    /// `sequence`
    Sequence = 19,
    /// An array.
    Array = 20,
    /// `typedef`
    Alias = 21,
    /// `exception`
    Except = 22,
    /// `long long`
    LongLong = 23,
    /// `unsigned long long`
    ULongLong = 24,
    /// `long double`
    LongDouble = 25,
    /// `wchar`
    WChar = 26,
    /// `wstring`
    WString = 27,
    /// `fixed`
    Fixed = 28,
    /// `valuetype`
    Value = 29,
    /// A boxed value.
    ValueBox = 30,
    /// `native`
    Native = 31,
    /// `abstract interface`
    AbstractInterface = 32,
    /// `local interface`
    LocalInterface = 33,
    /// `component`
    Component = 34,
    /// `home`
    Home = 35,
    /// `eventtype`
    Event = 36,
}

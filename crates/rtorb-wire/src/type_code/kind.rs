//! The kinds of types, with their numbers on the wire.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $keyword:literal;)*) => {
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

            /// The kind in IDL.
            pub(super) const fn keyword(self) -> &'static str {
                match self {
                    $(Self::$name => $keyword,)*
                }
            }
        }
    };
}

kinds! {
    /// Nothing.
    Null = 0, "null";
    /// `void`
    Void = 1, "void";
    /// `short`
    Short = 2, "short";
    /// `long`
    Long = 3, "long";
    /// `unsigned short`
    UShort = 4, "unsigned short";
    /// `unsigned long`
    ULong = 5, "unsigned long";
    /// `float`
    Float = 6, "float";
    /// `double`
    Double = 7, "double";
    /// `boolean`
    Boolean = 8, "boolean";
    /// `char`
    Char = 9, "char";
    /// `octet`
    Octet = 10, "octet";
    /// `any`
    Any = 11, "any";
    /// `TypeCode`
    TypeCode = 12, "TypeCode";
    /// `Principal`
    Principal = 13, "Principal";
    /// An interface.
    ObjectReference = 14, "interface";
    /// `struct`
    Struct = 15, "struct";
    /// `union`
    Union = 16, "union";
    /// `enum`
    Enum = 17, "enum";
    /// `string`
    String = 18, "string";
    /// `sequence`
    Sequence = 19, "sequence";
    /// An array.
    Array = 20, "array";
    /// `typedef`
    Alias = 21, "typedef";
    /// `exception`
    Except = 22, "exception";
    /// `long long`
    LongLong = 23, "long long";
    /// `unsigned long long`
    ULongLong = 24, "unsigned long long";
    /// `long double`
    LongDouble = 25, "long double";
    /// `wchar`
    WChar = 26, "wchar";
    /// `wstring`
    WString = 27, "wstring";
    /// `fixed`
    Fixed = 28, "fixed";
    /// `valuetype`
    Value = 29, "valuetype";
    /// A boxed value.
    ValueBox = 30, "valuetype";
    /// `native`
    Native = 31, "native";
    /// `abstract interface`
    AbstractInterface = 32, "abstract interface";
    /// `local interface`
    LocalInterface = 33, "local interface";
    /// `component`
    Component = 34, "component";
    /// `home`
    Home = 35, "home";
    /// `eventtype`
    Event = 36, "eventtype";
}

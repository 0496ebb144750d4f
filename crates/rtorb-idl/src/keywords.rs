//! The keywords of IDL.
//!
//! Words that are new in IDL 4 and in the component model (`port`, `map`, `int16`, `component`) are names in older files. They
//! are keywords only where they begin a declaration or a type.

/// True if `word` can never be a name.
pub(crate) fn is_keyword(word: &str) -> bool {
    all().any(|keyword| keyword == word)
}

/// True for a keyword of IDL before CORBA 2.3. Older files may use a later one, in another case, as a name.
pub(crate) fn is_classic(keyword: &str) -> bool {
    CLASSIC.contains(&keyword)
}

/// True if a line that starts with `word` probably starts a declaration.
pub(crate) fn begins_declaration(word: &str) -> bool {
    BEGINNINGS.contains(&word)
}

/// The keyword that `word` equals if case is ignored. Names and keywords are compared without case (CORBA 3.3 part 1, 7.2.4).
pub(crate) fn with_case(word: &str) -> Option<&'static str> {
    all().find(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// All keywords, for suggestions.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    CLASSIC.into_iter().chain(LATER)
}

#[rustfmt::skip]
const CLASSIC: [&str; 36] = [
    "any", "attribute", "boolean", "case", "char", "const", "context", "default", "double", "enum", "exception", "FALSE",
    "float", "in", "inout", "interface", "long", "module", "Object", "octet", "oneway", "out", "raises", "readonly", "sequence",
    "short", "string", "struct", "switch", "TRUE", "typedef", "union", "unsigned", "void", "wchar", "wstring",
];
#[rustfmt::skip]
const LATER: [&str; 12] = [
    "abstract", "custom", "factory", "fixed", "local", "native", "private", "public", "supports", "truncatable", "ValueBase",
    "valuetype",
];
#[rustfmt::skip]
const BEGINNINGS: [&str; 20] = [
    "abstract", "attribute", "bitmask", "bitset", "component", "const", "custom", "enum", "eventtype", "exception", "home",
    "interface", "local", "module", "native", "oneway", "struct", "typedef", "union", "valuetype",
];

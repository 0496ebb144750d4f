//! The Rust names of IDL names.

use proc_macro2::{Ident, Span};

use crate::renames::Declared;
use crate::tree::{Item, ItemKind};

/// `many_seq`, `Many`, `RT_Info` as a type or variant: `ManySeq`, `Many`, `RtInfo`.
pub(super) fn upper_camel(name: &str) -> String {
    let mut camel = String::new();
    for word in words(name) {
        let starts_with_digit = word.starts_with(|first: char| first.is_numeric());
        // As in `X86_64`: without it `v1_2` and `v12` would be one name.
        if starts_with_digit && camel.ends_with(char::is_numeric) {
            camel.push('_');
        }
        let mut letters = word.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    camel
}

/// `cube_void`, `getHTTPStatus` as a function, field or module: `cube_void`, `get_http_status`.
pub(super) fn snake(name: &str) -> String {
    words(name).join("_")
}

/// `MaxLength` as a constant: `MAX_LENGTH`.
pub(super) fn screaming(name: &str) -> String {
    snake(name).to_uppercase()
}

/// The name of a type, trait or variant.
pub(super) fn type_ident(declared: &dyn Declared) -> Ident {
    match declared.chosen() {
        Some(chosen) => ident(chosen),
        None => ident(&upper_camel(declared.name())),
    }
}

/// The name of a function, field or parameter.
pub(super) fn value_ident(declared: &dyn Declared) -> Ident {
    match declared.chosen() {
        Some(chosen) => ident(chosen),
        None => ident(&snake(declared.name())),
    }
}

/// The name of the function that sets an attribute or a bit field.
pub(super) fn set_ident(declared: &dyn Declared) -> Ident {
    match declared.chosen() {
        Some(chosen) => ident(&format!("set_{chosen}")),
        None => ident(&format!("set_{}", snake(declared.name()))),
    }
}

/// The name of a constant.
pub(super) fn constant_ident(declared: &dyn Declared) -> Ident {
    match declared.chosen() {
        Some(chosen) => ident(chosen),
        None => ident(&screaming(declared.name())),
    }
}

/// The beginning of the names of types that are made for a declaration. An escaped name keeps its trailing underscores.
pub(super) fn stem(declared: &dyn Declared) -> String {
    match declared.chosen() {
        Some(chosen) => upper_camel(chosen) + trailing_underscores(chosen),
        None => upper_camel(declared.name()),
    }
}

/// The name of the Rust module for the declarations inside `item`.
///
/// Modules and types share a namespace, so a module `str` or `u8` would hide the primitive type.
pub(super) fn module_ident(item: &Item) -> Ident {
    let name = match item.chosen() {
        Some(chosen) => snake(chosen) + trailing_underscores(chosen),
        None => snake(&item.name),
    };
    if PRIMITIVES.contains(&name.as_str()) {
        quote::format_ident!("{name}_")
    } else {
        ident(&name)
    }
}

/// The Rust name of `item`.
pub(super) fn item_ident(item: &Item) -> Ident {
    match &item.kind {
        ItemKind::Module => module_ident(item),
        ItemKind::Constant { .. } => constant_ident(item),
        _ => type_ident(item),
    }
}

/// The name of the servant trait of `interface`.
pub(super) fn servant_ident(interface: &Item) -> Ident {
    quote::format_ident!("{}Servant", stem(interface))
}

/// True if `name` can name a Rust declaration. Keywords can: they become raw identifiers. Names that begin with two underscores
/// belong to the generator.
pub(super) fn is_name(name: &str) -> bool {
    KEYWORDS.contains(&name) || !name.starts_with("__") && syn::parse_str::<Ident>(name).is_ok()
}

fn trailing_underscores(name: &str) -> &str {
    &name[name.trim_end_matches('_').len()..]
}

/// Names for local variables of generated code that none of `taken` has.
///
/// A trailing underscore is enough: except for names such as `self_`, snake case has none.
pub(super) fn fresh<const COUNT: usize>(wanted: [&str; COUNT], taken: &[Ident]) -> [Ident; COUNT] {
    wanted.map(|wanted| {
        let mut name = wanted.to_owned();
        while taken.iter().any(|other| *other == name) {
            name.push('_');
        }
        Ident::new(&name, Span::call_site())
    })
}

/// `name` as an identifier, escaped if it is a keyword.
pub(super) fn ident(name: &str) -> Ident {
    if NEVER_RAW.contains(&name) {
        quote::format_ident!("{name}_")
    } else if KEYWORDS.contains(&name) {
        Ident::new_raw(name, Span::call_site())
    } else {
        Ident::new(name, Span::call_site())
    }
}

/// The words of a name in lower case: split at underscores, before a capital that follows a small letter, and before
/// the last capital of a run that goes on in small letters.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let small_after = letters
            .get(at + 1)
            .is_some_and(|after| after.is_lowercase());
        let starts_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase() || small_after && before.is_alphanumeric()
            });
        if letter == '_' || starts_word {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if letter != '_' {
            word.extend(letter.to_lowercase());
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Rust 2024, strict and reserved.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Keywords that may not be raw identifiers either.
const NEVER_RAW: &[&str] = &["self", "super", "crate", "Self"];

/// Names of primitive types.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f16", "f32", "f64", "f128", "i8", "i16", "i32", "i64", "i128", "isize", "str",
    "u8", "u16", "u32", "u64", "u128", "usize",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Location;

    #[test]
    fn types_are_upper_camel_case() {
        for (idl, rust) in [
            ("many_seq", "ManySeq"),
            ("Many", "Many"),
            ("e_0th", "E0th"),
            ("RT_Info", "RtInfo"),
            ("DUPLICATE_NAME", "DuplicateName"),
            ("IDLType", "IdlType"),
            ("POA", "Poa"),
            ("v1_2", "V1_2"),
            ("v12", "V12"),
            ("MD5Hash", "Md5Hash"),
            ("Vector3D", "Vector3d"),
        ] {
            assert_eq!(upper_camel(idl), rust);
        }
    }

    #[test]
    fn functions_and_constants_are_snake_case() {
        assert_eq!(snake("getHTTPStatus"), "get_http_status");
        assert_eq!(snake("CosNaming"), "cos_naming");
        assert_eq!(snake("e_0th"), "e_0th");
        assert_eq!(screaming("MaxLength"), "MAX_LENGTH");
    }

    #[test]
    fn keywords_and_primitive_names_are_escaped() {
        assert_eq!(value_ident(&module("type")).to_string(), "r#type");
        assert_eq!(value_ident(&module("self")).to_string(), "self_");
        assert_eq!(type_ident(&module("self")).to_string(), "Self_");
        assert_eq!(module_ident(&module("Str")).to_string(), "str_");
        assert_eq!(module_ident(&module("Match")).to_string(), "r#match");
    }

    #[test]
    fn a_chosen_name_replaces_the_rule_and_keeps_its_underscores() {
        let mut item = module("getHTTPStatus");
        item.choose("status_");
        assert_eq!(value_ident(&item).to_string(), "status_");
        assert_eq!(module_ident(&item).to_string(), "status_");
        assert_eq!(stem(&item), "Status_");
        assert!(is_name("status_") && is_name("type") && !is_name("2nd") && !is_name(""));
    }

    #[test]
    fn local_names_avoid_parameter_names() {
        let taken = [value_ident(&module("w")), value_ident(&module("r"))];
        assert_eq!(
            fresh(["w", "v"], &taken).map(|name| name.to_string()),
            ["w_", "v"]
        );
    }

    fn module(name: &str) -> Item {
        Item {
            name: name.to_owned(),
            scope: None,
            repository_id: String::new(),
            documentation: Vec::new(),
            annotations: Vec::new(),
            location: Location::default(),
            in_main_file: true,
            items: Vec::new(),
            kind: ItemKind::Module,
        }
    }
}

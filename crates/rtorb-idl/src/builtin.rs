//! The files that every IDL compiler brings along: `orb.idl` and `TypeCode.idl` (CORBA 3.3 part 1, 7.21).

/// The text of the built-in file `name`, which is used when no include directory has one.
pub(crate) fn file(name: &str) -> Option<&'static str> {
    match name {
        "orb.idl" | "TypeCode.idl" => Some(include_str!("builtin/orb.idl")),
        _ => None,
    }
}

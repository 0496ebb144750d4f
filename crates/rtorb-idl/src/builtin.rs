//! The files that every IDL compiler brings along: `orb.idl`, `TypeCode.idl` and `IOP.idl` (CORBA 3.3 part 1, 7.21).

/// The text of `orb.idl`: module CORBA.
pub(crate) const ORB: &str = include_str!("builtin/orb.idl");

/// The text of the built-in file `name`, which is used when no include directory has one.
pub(crate) fn file(name: &str) -> Option<&'static str> {
    match name {
        "orb.idl" | "TypeCode.idl" => Some(ORB),
        "IOP.idl" => Some(include_str!("builtin/IOP.idl")),
        _ => None,
    }
}

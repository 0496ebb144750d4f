//! The files that every IDL compiler provides: `orb.idl`, `TypeCode.idl`, `IOP.idl` and `Components.idl`
//! (CORBA 3.3 part 1, 7.21).

/// Module CORBA. `#include <orb.idl>` does not read it. The checker takes from it only the declarations that a specification
/// uses, so that no unused code is generated.
pub(crate) const ORB: &str = include_str!("builtin/orb.idl");

/// The text of the built-in file `name`, which is used when no include directory has one.
pub(crate) fn file(name: &str) -> Option<&'static str> {
    match name {
        "orb.idl" | "TypeCode.idl" => Some("// The checker has module CORBA built in.\n"),
        "IOP.idl" => Some(include_str!("builtin/IOP.idl")),
        "Components.idl" => Some(include_str!("builtin/Components.idl")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn built_in_files_are_valid() {
        let files =
            ["IOP.idl", "Components.idl"].map(|name| super::file(name).expect("it is built in"));
        for text in files.into_iter().chain([super::ORB]) {
            let outcome = crate::check_text("built-in.idl", text, &crate::Options::default());
            assert!(
                outcome.tree.is_some() && outcome.diagnostics.is_empty(),
                "{}",
                outcome.render(false)
            );
        }
    }
}

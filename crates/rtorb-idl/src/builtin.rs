//! The files that every IDL compiler provides: `orb.idl`, `TypeCode.idl`, `IOP.idl` and `Components.idl`
//! (CORBA 3.3 part 1, 7.21); and those of TAO, which has a file for each part of module CORBA.

/// The text of module CORBA. `#include <orb.idl>` does not read it. The checker takes only the declarations that a specification
/// uses, so that no unused code is generated.
pub(crate) const ORB: &str = include_str!("builtin/orb.idl");

/// The text of the built-in file `name`, which is used when no include directory has one.
pub(crate) fn file(name: &str) -> Option<&'static str> {
    const IN_MODULE_CORBA: Option<&str> = Some("// The checker has module CORBA built in.\n");
    let of_tao = name.strip_prefix("tao/");
    let of_tao = of_tao.map(|name| name.strip_suffix(".pidl").unwrap_or(name));
    match (of_tao, name) {
        (Some("orb.idl"), _) | (None, "orb.idl" | "TypeCode.idl") => IN_MODULE_CORBA,
        (Some(part), _) if TAO_PARTS.contains(&part) => IN_MODULE_CORBA,
        (Some("TimeBase"), _) => Some(include_str!("builtin/TimeBase.idl")),
        (Some("IOP"), _) | (None, "IOP.idl") => Some(include_str!("builtin/IOP.idl")),
        (None, "Components.idl") => Some(include_str!("builtin/Components.idl")),
        _ => None,
    }
}

/// The files `tao/*.pidl` whose declarations [`ORB`] has.
const TAO_PARTS: [&str; 34] = [
    "AnyTypeCode/AnySeq",
    "AnyTypeCode/Bounds",
    "AnyTypeCode/ValueModifier",
    "AnyTypeCode/Visibility",
    "BooleanSeq",
    "Bounds",
    "CORBA",
    "CharSeq",
    "Current",
    "Domain",
    "DoubleSeq",
    "FloatSeq",
    "Int8Seq",
    "LongDoubleSeq",
    "LongLongSeq",
    "LongSeq",
    "ObjectIdList",
    "OctetSeq",
    "ParameterMode",
    "Policy",
    "Policy_Current",
    "Policy_Forward",
    "Policy_Manager",
    "Services",
    "ShortSeq",
    "StringSeq",
    "Typecode_types",
    "UInt8Seq",
    "ULongLongSeq",
    "ULongSeq",
    "UShortSeq",
    "WCharSeq",
    "WStringSeq",
    "orb_types",
];

#[cfg(test)]
mod tests {
    #[test]
    fn built_in_files_are_valid() {
        let files = ["IOP.idl", "Components.idl", "tao/TimeBase.pidl"]
            .map(|name| super::file(name).expect("it is built in"));
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

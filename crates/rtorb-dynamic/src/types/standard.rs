//! The IDL that is built in.

pub(super) use rtorb_idl::project::KNOWN_TO_TOOLS as FILES;

/// The text without its `#include` lines: the included files are before it.
pub(super) fn without_includes(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("#include"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_idl::Options;

    #[test]
    fn the_built_in_files_are_valid() {
        for (name, text) in FILES {
            let outcome = rtorb_idl::check_text(name, &without_includes(text), &Options::default());
            assert!(outcome.tree.is_some(), "{}", outcome.render(false));
        }
        let types = crate::Types::standard();
        for interface in [
            "CosNaming::NamingContextExt",
            "CosEventChannelAdmin::EventChannel",
            "RtecEventChannelAdmin::EventChannel",
            "RtecScheduler::Scheduler",
            "Cubit",
        ] {
            assert!(types.interface(interface).is_some(), "{interface}");
        }
    }
}

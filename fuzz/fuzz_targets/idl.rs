//! IDL text, checked and explained, and Rust made of what is right.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Ok(text) = core::str::from_utf8(octets) else {
        return;
    };
    let outcome = rtorb_idl::check_text("input.idl", text, &rtorb_idl::Options::default());
    outcome.render(false);
    let shared = rtorb_idl::Options {
        shared_with: Some(rtorb_idl::OtherCompiler::Omniidl),
        ..rtorb_idl::Options::default()
    };
    rtorb_idl::check_text("input.idl", text, &shared).render(false);
    if let Some(tree) = outcome.tree {
        // What is right may still be more than the back end can: then it says so.
        let _ = rtorb_idl::rust::generate(&tree);
    }
});

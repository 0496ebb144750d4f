//! Translates the measured interface.
fn main() {
    rtorb_idl::Compiler::new()
        .start_calls(true)
        .defer_replies(true)
        .compile(rtorb_idl::project::file("cubit.idl"));
}

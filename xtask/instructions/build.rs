//! Translates the measured interface.
fn main() {
    rtorb_idl::compile(rtorb_idl::project::file("cubit.idl"));
}

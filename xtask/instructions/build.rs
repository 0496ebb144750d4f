//! Translates the measured interface.
fn main() {
    rtorb_idl::compile("idl/cubit.idl");
}

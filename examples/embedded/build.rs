//! Makes Rust of the Cubit's IDL: the same that a program of the full ORB has.

fn main() {
    rtorb_idl::compile("../../idl/cubit.idl");
}

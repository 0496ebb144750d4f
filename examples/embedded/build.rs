//! Makes Rust of the IDL: the same that a program of the full ORB has.

fn main() {
    rtorb_idl::compile(rtorb_idl::project::file("cubit.idl"));
    rtorb_idl::compile(rtorb_idl::project::file("exchange.idl"));
    rtorb_idl::compile("idl/guest.idl");
}

//! Translates Tango's IDL.
fn main() {
    rtorb_idl::compile("idl/tango.idl");
}

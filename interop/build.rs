//! Translates the IDL of the tests.
fn main() {
    rtorb_idl::compile("../idl/atlas.idl");
    rtorb_idl::compile("../idl/cubit.idl");
    rtorb_idl::compile("../idl/exchange.idl");
    rtorb_idl::compile("../idl/relay.idl");
    rtorb_idl::compile("../tests/idl/clockwork.idl");
}

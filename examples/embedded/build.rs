//! Makes Rust of the IDL, for the embedded ORB.

fn main() {
    let compiler = rtorb_idl::Compiler::new().runtime("rtorb_embedded");
    compiler.compile(rtorb_idl::project::file("cubit.idl"));
    compiler.compile(rtorb_idl::project::file("exchange.idl"));
    compiler.compile("idl/guest.idl");
    compiler.compile("idl/periods.idl"); // of the tests
}

//! Makes Rust of the IDL, for the embedded ORB.

fn main() {
    let compiler = rtorb_idl::Compiler::new().runtime("rtorb_embedded");
    compiler.compile("idl/cubit.idl");
    compiler.compile("idl/exchange.idl");
    compiler.compile("idl/guest.idl");
}

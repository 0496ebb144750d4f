//! Translates the IDL of the gateway and of its motor.
fn main() {
    rtorb_idl::Compiler::new()
        .start_calls(true)
        .async_servants(true)
        .compile("idl/plotter.idl");
}

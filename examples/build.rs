//! Translates the examples' IDL.
fn main() {
    rtorb_idl::compile("idl/greeter.idl");
    rtorb_idl::compile("idl/motor.idl"); // of the example timed-motor
}

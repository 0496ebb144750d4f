//! Translates the examples' IDL.
fn main() {
    rtorb_idl::compile("idl/greeter.idl");
    rtorb_idl::compile("idl/motor.idl"); // of the example timed-motor
    rtorb_idl::compile("idl/neighbours.idl"); // of the examples neighbours and reservation
    rtorb_idl::compile("idl/overload.idl"); // of the example overload
    rtorb_idl::Compiler::new()
        .start_calls(true)
        .compile("idl/plotter.idl"); // of the examples in-flight and block-on
    rtorb_idl::Compiler::new()
        .start_calls(true)
        .defer_replies(true)
        .compile("idl/axis.idl"); // of the example deferred-replies
    rtorb_idl::Compiler::new()
        .ami(true)
        .compile("idl/spindle.idl"); // of the example reply-handlers
}

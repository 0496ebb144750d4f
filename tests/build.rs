//! Compiles the IDL of the tests and the IDL of the back end's snapshots.

fn main() {
    rtorb_idl::compile("../examples/idl/greeter.idl"); // of the front page of the documentation
    rtorb_idl::compile("idl/echo.idl");
    rtorb_idl::compile("idl/inheritance.idl");
    rtorb_idl::compile("idl/failures.idl");
    rtorb_idl::compile("idl/clockwork.idl");
    rtorb_idl::compile("idl/ledger.idl");
    rtorb_idl::compile("idl/harbour.idl");
    rtorb_idl::compile("idl/matrix.idl");
    rtorb_idl::Compiler::new()
        .ami(true)
        .async_servants(true)
        .compile("idl/crane.idl");
    rtorb_idl::Compiler::new()
        .ami(true)
        .compile("../crates/rtorb-idl/tests/ami/stocks.idl");
    rtorb_idl::compile(rtorb_idl::project::file("atlas.idl"));
    rtorb_idl::Compiler::new()
        .ami(true)
        .compile(rtorb_idl::project::file("cubit.idl"));
    rtorb_idl::compile(rtorb_idl::project::file("exchange.idl"));
    rtorb_idl::compile("idl/relay.idl");
    for snapshot in [
        "abstract_interfaces",
        "bits",
        "chains",
        "constants",
        "context",
        "deep",
        "documentation",
        "escapes",
        "interfaces",
        "maps",
        "names",
        "nested",
        "optional",
        "recursion",
        "templates",
        "timing",
        "unions",
        "value_forms",
        "values",
        "valuetypes",
    ] {
        rtorb_idl::compile(format!("../crates/rtorb-idl/tests/rust/{snapshot}.idl"));
    }
}

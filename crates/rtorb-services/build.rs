//! Makes Rust of the services' IDL.
fn main() {
    for name in [
        "changeable_scheduler",
        "cos_event",
        "cos_naming",
        "distributable_threads",
        "event_statistics",
        "initial_references",
        "recorder",
    ] {
        rtorb_idl::compile(rtorb_idl::project::file(&format!("{name}.idl")));
    }
}

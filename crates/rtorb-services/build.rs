//! Makes Rust of the services' IDL.
fn main() {
    rtorb_idl::compile("idl/cos_event.idl");
    rtorb_idl::compile("idl/cos_naming.idl");
    rtorb_idl::compile("idl/event_statistics.idl");
    rtorb_idl::compile("idl/initial_references.idl");
    rtorb_idl::compile("idl/rtec_scheduler.idl");
}

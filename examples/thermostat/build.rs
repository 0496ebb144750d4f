//! Translates the thermostat's IDL.
fn main() {
    rtorb_idl::compile("idl/thermostat.idl");
}

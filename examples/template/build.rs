//! Translates the description to Rust.
fn main() {
    rtorb_idl::compile("idl/valve.idl");
}

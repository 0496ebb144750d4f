//! Translates the IDL, and lets the functions that replace those of the C library be found by name too.
fn main() {
    rtorb_idl::Compiler::new()
        .start_calls(true)
        .compile("idl/worker.idl");
    println!("cargo:rustc-link-arg-bins=-rdynamic");
}

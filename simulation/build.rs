//! Translates the IDL, and lets the functions that replace those of the C library be found by name too.
fn main() {
    for idl in ["idl/worker.idl", "idl/timed.idl"] {
        rtorb_idl::Compiler::new().start_calls(true).compile(idl);
    }
    println!("cargo:rustc-link-arg-bins=-rdynamic");
}

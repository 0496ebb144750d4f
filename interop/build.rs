//! Translates the IDL of the tests.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}

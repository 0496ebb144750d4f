//! Gives the package a folder of its own in the target folder (`OUT_DIR`), where the peers of other ORBs are built.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}

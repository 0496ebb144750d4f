//! Says to the linker where the kernel's handlers are.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-search={folder}");
    println!("cargo::rerun-if-changed=device.x");
    println!("cargo::rustc-link-arg=-Tlink.x");
}

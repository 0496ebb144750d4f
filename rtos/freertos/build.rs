//! Says where the linker finds the machine's memory, and the kernel's handlers.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-search={folder}");
    println!("cargo::rerun-if-changed=memory.x");
    // The kernel has names of its own for the exceptions that it handles.
    for (exception, handler) in [
        ("SVCall", "vPortSVCHandler"),
        ("PendSV", "xPortPendSVHandler"),
        ("SysTick", "xPortSysTickHandler"),
    ] {
        println!("cargo::rustc-link-arg=--defsym={exception}={handler}");
    }
    println!("cargo::rustc-link-arg=-Tlink.x");
}

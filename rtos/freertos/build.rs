//! Says to the linker which handlers the kernel has.

fn main() {
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

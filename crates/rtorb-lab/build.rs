//! Makes Rust of the IDL that the experiments call, and the servant with three hundred operations.

use std::path::Path;

fn main() {
    rtorb_idl::compile("idl/benchmark.idl");
    let cubit = rtorb_idl::project::file("cubit.idl");
    rtorb_idl::Compiler::new().start_calls(true).compile(&cubit);
    // The programs of omniORB are compiled with the same file.
    println!("cargo::rustc-env=CUBIT_IDL={}", cubit.display());
    // A constant pattern of labels has it.
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    println!("cargo::rustc-env=TARGET_ARCH={architecture}");
    rtorb_idl::compile("idl/demux.idl");
    idle_operations();
    rtorb_idl::compile("idl/model.idl");
    rtorb_idl::compile("idl/stage.idl");
}

/// Writes the servant of the interface `demux::Large`.
fn idle_operations() {
    let methods = (0..300).map(|number| {
        format!("    fn operation_{number:03}(&self) -> Result<(), SystemException> {{ Ok(()) }}\n")
    });
    let servant = format!(
        "impl LargeServant for Idle {{\n{}}}\n",
        methods.collect::<String>()
    );
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let file = Path::new(&folder).join("idle_operations.rs");
    std::fs::write(file, servant).expect("the folder of the build can be written");
}

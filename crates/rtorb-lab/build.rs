//! Makes Rust of the IDL that the experiments call.

fn main() {
    rtorb_idl::compile("idl/benchmark.idl");
    let cubit = rtorb_idl::project::file("cubit.idl");
    rtorb_idl::compile(&cubit);
    // The programs of omniORB are compiled with the same file.
    println!("cargo::rustc-env=CUBIT_IDL={}", cubit.display());
    rtorb_idl::compile("idl/demux.idl");
    rtorb_idl::compile("idl/model.idl");
    rtorb_idl::compile("idl/stage.idl");
}

//! Makes Rust of the IDL that the experiments call.

fn main() {
    rtorb_idl::compile("idl/benchmark.idl");
    rtorb_idl::compile("idl/cubit.idl");
    rtorb_idl::compile("idl/demux.idl");
    rtorb_idl::compile("idl/model.idl");
    rtorb_idl::compile("idl/stage.idl");
}

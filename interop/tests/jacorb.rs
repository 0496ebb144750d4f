//! JacORB, a peer that writes big-endian, both ways.

use rtorb::Orb;
use rtorb_interop::jacorb::jacorb;
use rtorb_interop::ours::{Ours, check_cubit};
use rtorb_interop::scratch::Scratch;
use rtorb_interop::stubs::Cubit;

#[test]
fn it_calls_us() {
    let Some(jacorb) = jacorb() else { return };
    let ours = Ours::serve();
    jacorb.call(&ours.text(ours.cubit.as_object()), "0,1,4,1021,4096,100000");
}

#[test]
fn we_call_it() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let (_server, reference) = jacorb.serve(&scratch);
    let orb = Orb::builder().build().expect("the ORB can be built");
    let cubit = Cubit::narrow(&orb.string_to_object(&reference).expect("a reference"))
        .expect("it is a Cubit");
    check_cubit(&cubit, &[0, 1, 4, 1021, 4096, 100_000]);
}

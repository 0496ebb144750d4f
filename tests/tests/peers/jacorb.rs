//! JacORB, a peer that writes big-endian, both ways.

use rtorb::Orb;
use rtorb_tests::ours::{Ours, Wide, check_cubit, check_desk, check_nested, check_text_by, url_of};
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::Desk;

#[test]
fn it_calls_us() {
    let Some(jacorb) = jacorb() else { return };
    let ours = Ours::serve();
    jacorb.call(
        "CubitClient",
        &ours.text(ours.cubit.as_object()),
        &["0,1,4,1021,4096,100000"],
    );
    let desk = ours.text(ours.desk.as_object());
    jacorb.call("DeskClient", &desk, &[]);
    jacorb.call("DeskClient", &url_of(&desk), &[]);
}

#[test]
fn we_call_it() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, reference) = jacorb.serve("CubitServer", &scratch);
    let orb = Orb::builder().build().expect("the ORB can be built");
    let cubit = Cubit::narrow(&orb.string_to_object(&reference).expect("a reference"))
        .expect("it is a Cubit");
    check_cubit(&cubit, &[0, 1, 4, 1021, 4096, 100_000]);
    let (_desks, reference) = jacorb.serve("DeskServer", &scratch);
    let desk = Desk::narrow(&orb.string_to_object(&reference).expect("a reference"))
        .expect("it is a Desk");
    check_desk(&desk, Wide::Sent);
    check_nested(&desk);
    check_text_by(&reference);
}

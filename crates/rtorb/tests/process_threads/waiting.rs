//! A thread that waits for room for a reply.

use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{CLOSE_CONNECTION, Connection, Request};
use rtorb_tests::running::PATIENCE;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

pub(crate) fn a_connection_does_not_give_way_while_its_thread_waits_for_room_for_a_reply() {
    let limits = Limits::with(|limits| {
        limits.connections_per_address_max = 1;
        // Longer than this test takes on a busy host.
        limits.send_timeout = PATIENCE;
    });
    let builder = Orb::builder().dispatch(DispatchStrategy::ThreadPerConnection);
    let ours = Ours::serve_as(builder.limits(limits));
    let request = Request::two_way(&ours.key(ours.cubit.as_object()), "cube_void").empty();
    let mut deaf = TcpStream::connect(ours.address()).expect("the server listens");
    let time = Duration::from_millis(200);
    deaf.set_write_timeout(Some(time)).expect("not zero");
    let requests = request.repeat(1000);
    let mut at = 0;
    // It takes no reply, until the server takes no request. True if it took some.
    let mut fill = || {
        let begun = at;
        while let Ok(taken) = deaf.write(&requests[at % requests.len()..]) {
            at += taken;
        }
        at > begun
    };
    // On a loaded machine, the server's thread may only not have run for a while.
    while fill() {
        until_others_sleep();
    }
    let refused = Connection::to(ours.address()).answer();
    assert_eq!(refused.expect("a message").kind, CLOSE_CONNECTION);
    let counts = ours.orb.connection_counts();
    assert_eq!((counts.gave_way, counts.refused), (0, 1), "{counts:?}");
}

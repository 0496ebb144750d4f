//! Clients that send faster than one thread serves: connections take turns.

use super::servant::Job;
use super::world::{Sending, World};
use crate::Orb;
use crate::transport::resolver::Resolver;
use crate::transport::{Stream, tcp};
use core::time::Duration;
use rtorb_tests::raw::{self, REQUEST};
use rtorb_wire::ior::Ior;

/// The requests of a turn.
const TURN: usize = 16;

#[test]
fn a_turn_of_one_thread_has_as_many_requests_as_it_says() {
    let world = World::perfect();
    let server = world.serve(Orb::builder(), Sending::ByEventLoop);
    let ior: Ior = server.reference.parse().expect("a reference");
    let profile = ior.iiop_profiles().next().expect("an IIOP profile");
    let [eager, other] = [(); 2].map(|()| {
        let connected = tcp::connect(&Resolver::default(), &profile.host, profile.port, u64::MAX);
        connected.expect("the simulated network connects")
    });
    let send = |client: &Stream, numbers: core::ops::Range<u32>| {
        let messages = numbers.map(|number| request(&profile.object_key, number));
        let bytes = messages.collect::<Vec<_>>().concat();
        assert_eq!(client.send_message_now(&bytes, &[]), Ok(bytes.len()));
    };
    // The first reply of a connection may be large, and has a turn of its own.
    send(&eager, 0..1);
    world.pass(Duration::from_millis(1));
    send(&eager, 1..40);
    send(&other, 100..101);
    world.pass(Duration::from_millis(1));
    let numbers = server.log.numbers();
    let place = numbers.iter().position(|number| *number == 100);
    assert_eq!(place, Some(1 + TURN), "{numbers:?}");
}

fn request(key: &[u8], number: u32) -> Vec<u8> {
    let mut stream = raw::Stream::new(REQUEST, 2, false);
    stream.ulong(number).raw(&[3, 0, 0, 0]);
    stream.ushort(0).octets(key).string("work").ulong(0);
    let job = Job::small(number);
    stream.align(8).ulong(number).align(8).raw(&[0; 8]);
    stream.octets(&vec![job.filler(); job.bytes]);
    stream.message()
}

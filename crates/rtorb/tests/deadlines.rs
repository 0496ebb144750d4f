//! Calls that end about when their time does: each is right or a timeout, and none takes another one's answer.

use std::thread;
use std::time::{Duration, Instant};

use rtorb::exception::OMG;
use rtorb::{ExceptionKind, ObjectRef, Orb};
use rtorb_tests::fake::{FakeServer, Peer, reply};

const TIMEOUT: Duration = Duration::from_millis(2);
const CALLS: u32 = 400;

#[test]
fn a_call_at_its_deadline_is_right_or_a_timeout() {
    let server = FakeServer::new(|_, mut peer: Peer| {
        let mut turn = 0;
        while let Some(id) = peer.request() {
            // From well before to well after the deadline, most of them close to it.
            thread::sleep(Duration::from_micros(
                [500, 1700, 1850, 1900, 1950, 2000, 2050, 2500][turn % 8],
            ));
            turn += 1;
            peer.send(&reply(id, 0, |body| {
                body.raw(&[1]);
            }));
        }
    });
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let orb = Orb::builder().build().expect("the ORB can be built");
                let object = orb
                    .string_to_object(&server.reference())
                    .expect("a reference");
                let hasty = object.with_round_trip_timeout(Some(TIMEOUT));
                let timeouts = (0..CALLS).filter(|_| timed_out(&hasty)).count();
                assert!(
                    (1..CALLS as usize).contains(&timeouts),
                    "some came too late, {timeouts}, and not all"
                );
                assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "with time enough");
            });
        }
    });
}

//= RT-CORBA 1.2 §Invocation Timeout
//% test
#[test]
fn every_thread_and_every_call_has_a_deadline_of_its_own() {
    let server = FakeServer::new(|_, mut peer: Peer| peer.wait_for_end());
    thread::scope(|scope| {
        for n in 1..8 {
            let server = &server;
            scope.spawn(move || {
                let timeout = Duration::from_millis(40 * n);
                let orb = Orb::builder()
                    .round_trip_timeout(Some(timeout))
                    .build()
                    .expect("the ORB can be built");
                let object = orb
                    .string_to_object(&server.reference())
                    .expect("a reference");
                for _ in 0..3 {
                    let begin = Instant::now();
                    assert!(timed_out(&object));
                    assert!(
                        begin.elapsed() >= timeout - Duration::from_millis(10),
                        "not before its time"
                    );
                    assert!(
                        begin.elapsed() < timeout + Duration::from_secs(5),
                        "{:?}",
                        begin.elapsed()
                    );
                }
            });
        }
    });
}

/// True if the call was a timeout, false if it was right.
fn timed_out(object: &ObjectRef) -> bool {
    match object.is_a("IDL:Any:1.0") {
        Ok(is_a) => {
            assert!(is_a);
            false
        }
        Err(failed) => {
            // Its time may be over before the request is sent: on a busy host, the thread may have to wait for so long.
            let minors = [OMG | 2, OMG | 3];
            let is_late = failed.kind == ExceptionKind::Timeout && minors.contains(&failed.minor);
            assert!(is_late, "{failed}");
            true
        }
    }
}

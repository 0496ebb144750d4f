//! What a server without an operating system enforces of annotated times, and what it refuses to promise.

use super::link::{MESSAGE_BYTES_MAX, client, pair};
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_embedded::{
    Clock, CompletionStatus, ExceptionKind, FixedPriority, NotEnforced, Object, ObjectRef, Server,
    SystemException, Tie,
};
use rtorb_embedded_cubit::periods::{Beat, BeatServant, Bounded, BoundedServant};
use std::sync::Arc;
use std::thread;

/// Does nothing.
struct Idle;

impl BeatServant for Idle {
    fn tick(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn tock(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn rest(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl BoundedServant for Idle {
    fn work(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A clock that the test sets.
#[derive(Default)]
struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

const PERIOD_NS: u64 = 50_000_000;

#[test]
fn a_server_with_a_clock_refuses_calls_before_their_time() {
    let (here, mut there) = pair();
    let clock = Arc::new(TestClock::default());
    let of_server = Arc::clone(&clock);
    thread::spawn(move || {
        let idle = Tie::<Beat, _>::new(Idle);
        let objects = [b"one", b"two"].map(|key| Object {
            key,
            servant: &idle,
        });
        let server = Server::new(&objects, MESSAGE_BYTES_MAX);
        let mut server = server.enforce_periods(&*of_server).unwrap();
        while server.serve_next(&mut there, &mut FixedPriority).is_ok() {}
    });
    let client = client(here);
    let beat = |key| Beat::narrow(&ObjectRef::new(client, "", key)).unwrap();
    let (one, two) = (beat(b"one"), beat(b"two"));
    let at = |ns: u64| clock.0.store(ns, Ordering::Relaxed);
    assert_eq!(one.tick(), Ok(()));
    assert_eq!(one.tock(), Ok(()), "it has a period of its own");
    assert_eq!(two.tick(), Ok(()), "so has the other object");
    for ns in [0, PERIOD_NS / 2, PERIOD_NS - 1] {
        at(ns);
        let refused = one.tick().unwrap_err();
        assert_eq!(refused.kind, ExceptionKind::Transient);
        assert_eq!(refused.completed, CompletionStatus::No);
        assert_eq!(one.rest(), Ok(()), "it has no period");
    }
    at(PERIOD_NS);
    assert_eq!(one.tick(), Ok(()), "refused calls do not count");
    at(PERIOD_NS + 1);
    assert!(one.tick().is_err());
}

#[test]
fn a_worst_case_is_refused_when_the_server_is_built() {
    let (beat, bounded) = (Tie::<Beat, _>::new(Idle), Tie::<Bounded, _>::new(Idle));
    let objects = [
        Object {
            key: b"beat",
            servant: &beat,
        },
        Object {
            key: b"bounded",
            servant: &bounded,
        },
    ];
    let clock = TestClock::default();
    let refused = Server::new(&objects, MESSAGE_BYTES_MAX).enforce_periods(&clock);
    let operation = "Periods::Bounded::work";
    assert_eq!(refused.err(), Some(NotEnforced { operation }));
}

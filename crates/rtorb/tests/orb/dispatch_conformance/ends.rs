//! The end of a server: calls in progress are answered, nobody waits in vain, nothing is left.

use super::Case;
use super::servants::{Gate, activate, call_until_it_fails};
use rtorb::exception::Phase;
use rtorb::{ExceptionKind, Orb, PoaError};
use rtorb_tests::raw::{CLOSE_CONNECTION, Connection, REPLY, Request};
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::Party;
use std::sync::Arc;
use std::thread;

pub(crate) fn a_server_that_ends_leaves_no_client_waiting(case: Case) {
    for _ in 0..10 {
        let ours = case.serve();
        let text = ours.text(ours.cubit.as_object());
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let orb = Orb::builder().build().expect("the ORB can be built");
                    let object = orb.string_to_object(&text).expect("a reference");
                    let failed = call_until_it_fails(&Cubit::unchecked_narrow(object));
                    let kinds = [ExceptionKind::Transient, ExceptionKind::CommFailure];
                    assert!(kinds.contains(&failed.kind), "{failed}");
                });
            }
            ours.orb.shutdown();
        });
    }
}

pub(crate) fn a_call_in_progress_is_answered_before_the_server_ends(case: Case) {
    let ours = case.serve();
    let gate = Arc::new(Gate::default());
    gate.close();
    let gated = activate(&ours, &gate);
    let held = case.spare_threads().clamp(1, 4);
    // The server's own ORB makes no calls any more once it is shut down.
    let client = Orb::builder().build().expect("the ORB can be built");
    let gated = client.string_to_object(&ours.text(gated.as_object()));
    let gated = Party::unchecked_narrow(gated.expect("a reference"));
    thread::scope(|scope| {
        let callers: Vec<_> = (0..held).map(|_| scope.spawn(|| gated.level())).collect();
        until("all are in the servant", || {
            (gate.entered() == held).then_some(())
        });
        ours.orb.shutdown();
        gate.open();
        for caller in callers {
            assert_eq!(caller.join().expect("no panic"), Ok(1));
        }
    });
}

pub(crate) fn requests_that_wait_when_the_server_ends_are_answered_or_told(case: Case) {
    let ours = case.serve();
    let gate = Arc::new(Gate::default());
    gate.close();
    let gated = activate(&ours, &gate);
    let key = ours.key(gated.as_object());
    let mut connections: Vec<_> = (0..10).map(|_| Connection::to(ours.address())).collect();
    for connection in &mut connections {
        let requests = (0..3).flat_map(|id| {
            Request {
                id,
                ..Request::two_way(&key, "_get_level")
            }
            .empty()
        });
        connection.send(&requests.collect::<Vec<_>>());
    }
    until("some are in the servant", || {
        (gate.entered() > 0).then_some(())
    });
    ours.orb.shutdown();
    gate.open();
    for connection in &mut connections {
        // The end of each connection comes, whatever was answered before it.
        while let Some(answer) = connection.answer() {
            assert!(
                [REPLY, CLOSE_CONNECTION].contains(&answer.kind),
                "{answer:?}"
            );
        }
    }
}

pub(crate) fn a_servant_may_end_its_server(case: Case) {
    let ours = case.serve();
    let client = Orb::builder().build().expect("the ORB can be built");
    let object = client.string_to_object(&ours.text(ours.cubit.as_object()));
    let cubit = Cubit::unchecked_narrow(object.expect("a reference"));
    cubit.shutdown().expect("it can be sent");
    let failed = call_until_it_fails(&cubit);
    let kinds = [
        ExceptionKind::Transient,
        ExceptionKind::CommFailure,
        ExceptionKind::ObjectNotExist,
    ];
    assert!(kinds.contains(&failed.kind), "{failed}");
    // Dropped, it waits for the end of the thread that runs the ORB.
    drop(ours);
}

pub(crate) fn its_socket_file_is_gone_and_later_clients_are_refused(case: Case) {
    for scheme in ["uiop", "shmiop"] {
        check_the_end_of_its_socket_file(case, scheme);
    }
}

fn check_the_end_of_its_socket_file(case: Case, scheme: &str) {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let endpoint = format!("{scheme}://{}", path.display());
    let ours = case.serve_as(case.builder().listen(&endpoint));
    let text = ours.text(ours.cubit.as_object());
    assert!(path.exists(), "it listens");
    drop(ours);
    let left = std::fs::read_dir(&*scratch)
        .expect("the folder is there")
        .count();
    assert_eq!(left, 0, "a file is left behind");
    let client = Orb::builder().build().expect("an ORB");
    let object = client.string_to_object(&text).expect("a reference");
    let gone = object.is_a("IDL:Cubit:1.0").expect_err("no server");
    assert_eq!(gone.kind, ExceptionKind::Transient, "{gone}");
    assert_eq!(gone.cause.map(|cause| cause.phase), Some(Phase::Connect));
}

pub(crate) fn its_servants_are_dropped_although_they_hold_the_orb(case: Case) {
    let orb = case.builder().build().expect("an ORB");
    let root = case.adapter(&orb);
    let servant = Arc::new(Cubes { orb: orb.clone() });
    let seen = Arc::downgrade(&servant);
    let _: Cubit = root.activate(servant).expect("room");
    orb.shutdown();
    orb.run().expect("nothing to serve any more");
    assert_eq!(seen.strong_count(), 0, "a servant is left");
    let late: Result<Cubit, _> = root.activate(Cubes { orb: orb.clone() });
    assert!(
        matches!(late, Err(PoaError::System(_))),
        "an adapter that is destroyed takes no servant"
    );
}

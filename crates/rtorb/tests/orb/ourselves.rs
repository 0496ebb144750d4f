//! What a server knows of itself when one of its servants calls it.

use std::thread;
use std::time::Duration;

use rtorb::exception::{OMG, Phase};
use rtorb::{DispatchStrategy, ExceptionKind, Orb, SystemException};
use rtorb_tests::ours::Ours;
use rtorb_tests::servants::Counter;
use rtorb_tests::stubs::exchange::{Desk, Party};

#[test]
fn a_reactive_server_knows_itself_by_each_of_its_names() {
    // Its only thread is in the call already: waiting for itself would last for ever.
    for endpoint in [
        "iiop://127.0.0.1:0",
        "iiop://127.0.0.1:0/hostname_in_ior=localhost",
    ] {
        let reactive = Orb::builder().dispatch(DispatchStrategy::Reactive);
        let ours = Ours::serve_as(reactive.listen(endpoint));
        let refused = ours
            .desk
            .level_of(Some(&Party::from(&ours.desk)))
            .expect_err("it would deadlock");
        assert_eq!(
            (refused.kind, refused.minor),
            (ExceptionKind::BadInvOrder, OMG | 3),
            "{refused}"
        );
    }
}

#[test]
fn a_callback_to_an_orb_that_nobody_serves_is_named_as_the_cause_of_the_timeout() {
    for (_, dispatch) in DispatchStrategy::ALL {
        for (of_server, of_client) in [(60_000, 300), (300, 60_000)] {
            let timeout = |ms| Some(Duration::from_millis(ms));
            let ours = Ours::serve_as(Orb::builder().round_trip_timeout(timeout(of_server)));
            let builder = Orb::builder().dispatch(dispatch);
            let orb = builder.round_trip_timeout(timeout(of_client)).build();
            let orb = orb.expect("an ORB");
            let text = ours.text(ours.desk.as_object());
            let object = orb.string_to_object(&text).expect("a reference");
            let desk = Desk::unchecked_narrow(object);
            let own: Desk = orb
                .root_poa()
                .expect("it listens")
                .activate(Counter::default())
                .expect("there is room");
            let called_back = || desk.level_of(Some(&Party::from(&own)));
            let hung = called_back().expect_err("nobody serves it");
            assert_eq!(hung.kind, ExceptionKind::Timeout, "{dispatch}: {hung}");
            assert_eq!(
                phase(&hung),
                Some(Phase::AwaitUnserved),
                "{dispatch}: {hung}"
            );
            assert!(hung.to_string().contains("Orb::run"), "{hung}");
            thread::scope(|scope| {
                scope.spawn(|| orb.run().expect("it runs"));
                let answered = called_back();
                orb.shutdown();
                assert_eq!(answered, Ok(1), "{dispatch}");
            });
        }
    }
}

fn phase(exception: &SystemException) -> Option<Phase> {
    exception.cause.as_ref().map(|cause| cause.phase)
}

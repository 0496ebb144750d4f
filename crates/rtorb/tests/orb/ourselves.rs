//! What a server knows of itself when one of its servants calls it.

use std::thread;
use std::time::Duration;

use rtorb::exception::{OMG, Phase};
use rtorb::{CompletionStatus, DispatchStrategy, ExceptionKind, Orb, SyncScope, SystemException};
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use rtorb_tests::servants::Counter;
use rtorb_tests::stubs::exchange::{Desk, Party};
use rtorb_tests::stubs::{Cubit, Relay, RelayServant, Seen};

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
            // On a busy host, the time may pass before the call is sent.
            let hung = until("the call is sent", || {
                let hung = called_back().expect_err("nobody serves it");
                assert_eq!(hung.kind, ExceptionKind::Timeout, "{dispatch}: {hung}");
                (hung.completed != CompletionStatus::No).then_some(hung)
            });
            assert_eq!(
                phase(&hung),
                Some(Phase::AwaitUnserved),
                "{dispatch}: {hung}"
            );
            assert!(hung.to_string().contains("Orb::run"), "{hung}");
            thread::scope(|scope| {
                scope.spawn(|| orb.run().expect("it runs"));
                // On a busy host, the time may pass before the ORB serves.
                let mut answers = (0..100).map(|_| called_back());
                let is_late = |answer: &Result<i32, SystemException>| {
                    (answer.as_ref()).is_err_and(|it| it.kind == ExceptionKind::Timeout)
                };
                let answered = answers.find(|answer| !is_late(answer));
                orb.shutdown();
                assert_eq!(answered, Some(Ok(1)), "{dispatch}");
            });
        }
    }
}

/// Ends its ORB, and then asks another server.
struct Ending {
    asks: Cubit,
    orb: Orb,
}

impl RelayServant for Ending {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        self.orb.shutdown();
        let asks = self.asks.clone();
        let elsewhere = thread::spawn(move || asks.cube_long(3));
        let refused = elsewhere.join().expect("no panic").expect_err("it ends");
        assert_eq!(
            (refused.kind, refused.minor),
            (ExceptionKind::BadInvOrder, OMG | 4)
        );
        assert_eq!(self.asks.cube_long(3), Ok(27));
        let oneway = self.asks.as_object().with_sync_scope(SyncScope::None);
        assert_eq!(oneway.flush(), Ok(true));
        Ok(Vec::new())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_servant_whose_request_is_in_progress_may_call_while_its_orb_ends_and_no_other_thread() {
    let other = Ours::serve();
    for (name, dispatch) in DispatchStrategy::ALL {
        let builder = Orb::builder().dispatch(dispatch);
        let orb = builder.build().expect("an ORB");
        let text = other.text(other.cubit.as_object());
        let asks = orb.string_to_reference(&text).expect("it answers");
        let ending = Ending {
            asks,
            orb: orb.clone(),
        };
        let own: Relay = orb
            .root_poa()
            .expect("it listens")
            .activate(ending)
            .expect("there is room");
        let client = Orb::builder().build().expect("an ORB");
        let text = own.as_object().to_string();
        let object = client.string_to_object(&text).expect("a reference");
        thread::scope(|scope| {
            let served = scope.spawn(|| orb.run());
            let answered = Relay::unchecked_narrow(object).pass_on();
            orb.shutdown();
            assert_eq!(answered, Ok(Vec::new()), "{name}");
            assert_eq!(served.join().expect("no panic"), Ok(()), "{name}");
        });
    }
}

fn phase(exception: &SystemException) -> Option<Phase> {
    exception.cause.as_ref().map(|cause| cause.phase)
}

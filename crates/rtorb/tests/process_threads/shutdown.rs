//! What is left of a server that was shut down: nothing.

use rtorb::{DispatchStrategy, Orb, OrbError};
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use rtorb_tests::scheduling::tasks;
use rtorb_tests::scratch::Scratch;
use std::thread;
use std::time::Duration;

pub(crate) fn an_orb_that_is_shut_down_before_it_listens_never_does() {
    let scratch = Scratch::new();
    let path = scratch.join("never");
    let builder = Orb::builder().listen(&format!("uiop://{}", path.display()));
    let orb = builder.build().expect("an ORB");
    orb.shutdown();
    orb.run().expect("it ends at once");
    assert!(!path.exists() && orb.endpoints().is_empty());
}

pub(crate) fn an_orb_that_is_shut_down_before_it_runs_is_not_ready() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let orb = Orb::builder().dispatch(dispatch).build().expect("an ORB");
        orb.root_poa().expect("it listens");
        orb.shutdown();
        let ended = orb.run_with(|| -> Result<(), OrbError> { panic!("{name} serves nobody") });
        assert_eq!(ended, Ok(()), "{name}");
    }
}

pub(crate) fn the_shortest_and_the_longest_times_are_ones_that_the_system_takes() {
    let day = Duration::from_secs(86_400);
    for time in [Duration::from_millis(1), day] {
        let limits = rtorb::Limits::with(|limits| limits.send_timeout = time);
        let ours = Ours::serve_as(Orb::builder().limits(limits));
        let builder = Orb::builder().connect_timeout(time.max(Duration::from_secs(1)));
        let client = builder.round_trip_timeout(Some(Duration::MAX));
        let text = ours.text(ours.cubit.as_object());
        let object = client.build().expect("an ORB").string_to_object(&text);
        assert_eq!(object.expect("legal").is_a("IDL:Cubit:1.0"), Ok(true));
    }
    for odd in [Duration::ZERO, Duration::MAX] {
        let limits = rtorb::Limits::with(|limits| limits.send_timeout = odd);
        let refused = Orb::builder().limits(limits).connect_timeout(odd).build();
        let text = refused.map(|_| ()).expect_err("out of range").to_string();
        for name in ["limits.send_timeout", "connect_timeout"] {
            let reason = format!("{name}: must be from 1 to 86400000 ms, not {odd:?}");
            assert!(text.contains(&reason), "{text}");
        }
    }
}

pub(crate) fn an_orb_that_two_threads_run_has_its_lanes_once_and_ends_for_both() {
    let builder = Orb::builder().dispatch(DispatchStrategy::Lanes);
    let orb = builder.build().expect("an ORB");
    orb.root_poa().expect("it listens");
    let lanes = || {
        let all = tasks(std::process::id());
        all.iter()
            .filter(|task| task.name.starts_with("rtorb-p0"))
            .count()
    };
    thread::scope(|scope| {
        let run = || scope.spawn(|| orb.run().expect("the ORB runs"));
        let _first = run();
        until("the lane has its thread", || (lanes() == 1).then_some(()));
        let second = run();
        until_others_sleep();
        let seen = (lanes(), second.is_finished());
        orb.shutdown();
        assert_eq!(seen, (1, false), "it runs as long as the ORB does");
    });
    until("the lane's thread has gone", || {
        (lanes() == 0).then_some(())
    });
}

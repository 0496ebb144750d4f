//! Deadlines with other ORBs: JacORB knows those of CORBA Messaging, and no ORB is disturbed by ours.

use rtorb::giop::Version;
use rtorb::{DeadlineForm, ExceptionKind, Orb, Strategies};
use rtorb_tests::ours::{Ours, Wide, check_cubit, check_desk};
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::jdk::jdk_orb;
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::Desk;
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);
const FORMS: [DeadlineForm; 2] = [DeadlineForm::EndTime, DeadlineForm::RemainingTime];

#[test]
fn calls_of_jacorb_are_served_in_time_and_refused_after_it() {
    let Some(jacorb) = jacorb() else { return };
    let ours = Ours::serve();
    let desk = ours.text(ours.desk.as_object());
    assert_eq!(jacorb.call("DeadlineClient", &desk, &[]).len(), 12);
    // JacORB may or may not tell the server which calls it gives up.
    let (expired, cancelled) = (ours.orb.requests_expired(), ours.orb.requests_cancelled());
    assert!(
        expired >= 2 && expired + cancelled == 4,
        "{expired} {cancelled}"
    );
}

#[test]
fn jacorb_does_not_carry_out_our_oneways_that_expire_in_its_queue() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let (_desks, reference) = jacorb.serve_by_one_thread("DeskServer", &scratch);
    let orb = Orb::builder().build().expect("the ORB can be built");
    let desk: Desk = orb.string_to_reference(&reference).expect("a Desk");
    let other = Orb::builder().build().expect("the ORB can be built");
    let busy: Desk = other.string_to_reference(&reference).expect("a Desk");
    for (deadline, served) in [(LONG, 1), (SHORT, 0)] {
        let before = desk.noted().expect("a count");
        // Longer than a busy host delays the oneway.
        let given_up = busy.with_timeout(SHORT).sleep(4_000);
        let given_up = given_up.expect_err("the servant sleeps longer");
        assert_eq!(given_up.kind, ExceptionKind::Timeout);
        desk.with_deadline(deadline).note(1).expect("it is sent");
        assert_eq!(desk.noted(), Ok(before + served), "{deadline:?}");
    }
}

#[test]
fn jacorb_serves_calls_with_deadlines() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, cubit) = jacorb.serve("CubitServer", &scratch);
    let (_desks, desk) = jacorb.serve("DeskServer", &scratch);
    check_cubits_and_desks(&cubit, &desk, Version::V1_2);
}

#[test]
fn omniorb_serves_calls_with_deadlines_in_every_version() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, cubit) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    let (_desks, desk) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]);
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        check_cubits_and_desks(&cubit, &desk, version);
    }
}

#[test]
fn a_call_that_is_given_up_leaves_the_connection_to_the_calls_of_others() {
    let (Some(omniorb), Some(jacorb)) = (omniorb(), jacorb()) else {
        return;
    };
    let scratch = Scratch::new();
    let (_omniorb, of_omniorb) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]);
    let (_jacorb, of_jacorb) = jacorb.serve("DeskServer", &scratch);
    for reference in [of_omniorb, of_jacorb] {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            check_others(&reference, version);
        }
    }
}

#[test]
fn the_jdks_orb_serves_calls_with_deadlines() {
    let Some(jdk) = jdk_orb() else { return };
    let scratch = Scratch::new();
    let (_server, reference) = jdk.serve_text(&scratch);
    for form in FORMS {
        let orb = Orb::builder().deadline_form(form).build();
        let orb = orb.expect("the ORB can be built");
        let desk: Desk = orb.string_to_reference(&reference).expect("a Desk");
        let desk = desk.with_deadline(LONG);
        for text in ["", "plain", "caf\u{e9}"] {
            assert_eq!(desk.echo_string(text).as_deref(), Ok(text), "{form}");
        }
    }
}

/// Makes every call with a deadline in both forms, gives one up, and makes further calls.
fn check_cubits_and_desks(cubit: &str, desk: &str, version: Version) {
    for form in FORMS {
        let orb = Orb::builder().deadline_form(form).max_giop_version(version);
        let orb = orb.build().expect("the ORB can be built");
        let cubit: Cubit = orb.string_to_reference(cubit).expect("a Cubit");
        check_cubit(&cubit.with_deadline(LONG), &[0, 1, 4096]);
        let desk: Desk = orb.string_to_reference(desk).expect("a Desk");
        let desk = desk.with_deadline(LONG);
        let wide = match version {
            Version::V1_2 => Wide::Sent,
            _ => Wide::LeftOut,
        };
        check_desk(&desk, wide);
        let given_up = desk.with_deadline(SHORT).sleep(500);
        let given_up = given_up.expect_err("the servant sleeps longer");
        assert_eq!(given_up.kind, ExceptionKind::Timeout, "{form}");
        check_desk(&desk, wide);
    }
}

/// Gives a call up while another thread waits for its reply on the same connection.
fn check_others(reference: &str, version: Version) {
    let shared = Orb::builder().connection(Strategies::MINICOOL.connection);
    let orb = shared.max_giop_version(version).build();
    let orb = orb.expect("the ORB can be built");
    let desk: Desk = orb.string_to_reference(reference).expect("a Desk");
    assert!(desk.name().is_ok(), "both threads find one connection");
    thread::scope(|scope| {
        let other = scope.spawn(|| desk.sleep(500));
        let given_up = desk.with_deadline(SHORT).sleep(500);
        let given_up = given_up.expect_err("the servant sleeps longer");
        assert_eq!(given_up.kind, ExceptionKind::Timeout);
        let ended = other.join().expect("no panic");
        assert_eq!(ended, Ok(()), "{version:?}: {reference}");
    });
}

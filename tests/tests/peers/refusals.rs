//! Values that cannot go: the caller is told which, and the connection is as good as before.

use rtorb::exception::OMG;
use rtorb::{CompletionStatus, ExceptionKind, Limits, Orb, OrbBuilder};
use rtorb_tests::ours::{Ours, activate_readable};
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::Desk;

const SMALL: usize = 64 << 10;

#[test]
fn a_request_beyond_the_limit_is_not_sent() {
    let ours = Ours::serve();
    let cubit = cubit(Orb::builder().limits(small()), &ours);
    let refused = cubit
        .cube_octet_sequence(&[1; SMALL])
        .expect_err("it is too large");
    assert_eq!(
        (refused.kind, refused.completed),
        (ExceptionKind::ImpLimit, CompletionStatus::No),
        "{refused}"
    );
    assert_eq!(cubit.cube_long(3), Ok(27));
}

#[test]
fn a_request_beyond_the_server_s_limit_costs_one_connection() {
    let ours = Ours::serve_as(Orb::builder().limits(small()));
    let cubit = cubit(Orb::builder(), &ours);
    assert_eq!(cubit.cube_long(3), Ok(27));
    let refused = cubit
        .cube_octet_sequence(&[1; 1 << 20])
        .expect_err("it is too large");
    assert!(
        matches!(
            refused.kind,
            ExceptionKind::CommFailure | ExceptionKind::Transient
        ),
        "{refused}"
    );
    assert_eq!(cubit.cube_long(3), Ok(27), "on a new connection");
}

#[test]
fn a_reply_beyond_the_server_s_limit_is_an_exception_instead() {
    let ours = Ours::serve_as(Orb::builder().limits(small()));
    // The answer is as long as the question but for the header, so some lengths go one way only.
    let cubit = cubit(Orb::builder(), &ours);
    let mut fits = 0;
    for length in (SMALL - 200..SMALL).step_by(4) {
        match cubit.cube_octet_sequence(&vec![1; length]) {
            Ok(cubed) => fits = cubed.len(),
            Err(refused) => assert!(
                matches!(
                    refused.kind,
                    ExceptionKind::ImpLimit | ExceptionKind::CommFailure | ExceptionKind::Transient
                ),
                "{refused}"
            ),
        }
    }
    assert!(fits > SMALL - 200, "what fits goes");
    assert_eq!(cubit.cube_long(3), Ok(27));
}

#[test]
fn text_outside_of_the_code_set_is_data_conversion() {
    let ours = Ours::serve();
    activate_readable(&ours.orb, "Refusals");
    // GIOP 1.0 has no code sets, so ISO 8859-1 holds.
    let text = format!("corbaloc::1.0@{}/Refusals/desk", ours.address());
    let desk = Desk::narrow(&object(Orb::builder(), &text)).expect("it is a Desk");
    let refused = desk
        .echo_string("\u{65e5}\u{672c}")
        .expect_err("ISO 8859-1 does not have it");
    assert_eq!(
        (refused.kind, refused.minor),
        (ExceptionKind::DataConversion, OMG | 1),
        "{refused}"
    );
    assert_eq!(desk.echo_string("caf\u{e9}").as_deref(), Ok("caf\u{e9}"));
    // Negotiated, it goes.
    let desk = Desk::narrow(&object(Orb::builder(), &ours.text(ours.desk.as_object())))
        .expect("it is a Desk");
    assert_eq!(
        desk.echo_string("\u{65e5}\u{672c} \u{1f980}").as_deref(),
        Ok("\u{65e5}\u{672c} \u{1f980}")
    );
}

#[test]
fn text_outside_of_omniorb_s_code_set_is_its_data_conversion() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_server, reference) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]);
    let desk = Desk::narrow(&object(Orb::builder(), &reference)).expect("it is a Desk");
    let refused = desk
        .echo_string("\u{65e5}\u{672c}")
        .expect_err("its own code set is ISO 8859-1");
    assert_eq!(refused.kind, ExceptionKind::DataConversion, "{refused}");
    assert_eq!(desk.echo_string("caf\u{e9}").as_deref(), Ok("caf\u{e9}"));
}

#[test]
fn a_zero_in_a_string_is_refused() {
    let ours = Ours::serve();
    let refused = ours
        .desk
        .echo_string("a\0b")
        .expect_err("CDR ends strings with it");
    assert_eq!(
        (refused.kind, refused.completed),
        (ExceptionKind::BadParam, CompletionStatus::No),
        "{refused}"
    );
    assert_eq!(ours.desk.echo_string("ab").as_deref(), Ok("ab"));
}

fn small() -> Limits {
    Limits::with(|limits| limits.message_bytes_max = SMALL)
}

fn cubit(builder: OrbBuilder, ours: &Ours) -> Cubit {
    Cubit::narrow(&object(builder, &ours.text(ours.cubit.as_object()))).expect("it is a Cubit")
}

fn object(builder: OrbBuilder, text: &str) -> rtorb::ObjectRef {
    let orb = builder.build().expect("the ORB can be built");
    orb.string_to_object(text).expect("a reference")
}

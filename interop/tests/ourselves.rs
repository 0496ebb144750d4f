//! Our client against our server, over every transport, strategy, version and byte order.

use rtorb::{DispatchStrategy, ExceptionKind, OMG, Orb, OrbBuilder, Version};
use rtorb_interop::ours::{Ours, Wide, check_cubit, check_desk, check_nested};
use rtorb_interop::scratch::Scratch;
use rtorb_interop::stubs::Cubit;
use rtorb_interop::stubs::exchange::{Desk, Party};

const LENGTHS: [usize; 6] = [0, 1, 4, 1021, 4096, 100_000];

#[test]
fn over_tcp_in_every_version_and_byte_order() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for order in [rtorb_wire::ByteOrder::Big, rtorb_wire::ByteOrder::Little] {
                println!("{name}, GIOP {version}, {order:?}");
                call(
                    &ours,
                    Orb::builder().max_giop_version(version).byte_order(order),
                    version,
                );
            }
        }
    }
}

#[test]
fn over_a_unix_socket() {
    let scratch = Scratch::new();
    for (name, dispatch) in DispatchStrategy::ALL {
        let endpoint = format!("uiop://{}", scratch.join(name).display());
        let ours = Ours::serve_as(
            Orb::builder()
                .dispatch(dispatch)
                .listen(&endpoint)
                .expect("an endpoint"),
        );
        call(&ours, Orb::builder(), Version::V1_2);
    }
}

#[test]
fn in_fragments_both_ways() {
    let ours = Ours::serve_as(Orb::builder().fragment_octets(256));
    call(&ours, Orb::builder().fragment_octets(64), Version::V1_2);
    call(
        &ours,
        Orb::builder()
            .fragment_octets(64)
            .max_giop_version(Version::V1_1),
        Version::V1_1,
    );
}

#[test]
fn a_servant_may_call_itself_where_another_thread_serves() {
    let ours = Ours::serve_as(Orb::builder().dispatch(DispatchStrategy::ThreadPerConnection));
    check_nested(&ours.desk);
    // The only thread of a reactive server is in the call already: waiting for itself would last for ever. It knows
    // itself by the name that its references have, too.
    for endpoint in [
        "iiop://127.0.0.1:0",
        "iiop://127.0.0.1:0/hostname_in_ior=localhost",
    ] {
        let reactive = Orb::builder().dispatch(DispatchStrategy::Reactive);
        let ours = Ours::serve_as(reactive.listen(endpoint).expect("an endpoint"));
        deadlock_is_refused(&ours);
    }
}

fn deadlock_is_refused(ours: &Ours) {
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

fn call(ours: &Ours, builder: OrbBuilder, version: Version) {
    let orb = builder.build().expect("the ORB can be built");
    let object = |text: &str| orb.string_to_object(text).expect("a reference");
    let cubit = Cubit::narrow(&object(&ours.text(ours.cubit.as_object()))).expect("it is a Cubit");
    check_cubit(&cubit, &LENGTHS);
    let desk = Desk::narrow(&object(&ours.text(ours.desk.as_object()))).expect("it is a Desk");
    let wide = if version == Version::V1_0 {
        Wide::LeftOut
    } else {
        Wide::Sent
    };
    check_desk(&desk, wide);
}

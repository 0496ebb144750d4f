//! What is left of a server that was shut down: nothing.

use rtorb::{DispatchStrategy, ExceptionKind, Orb, Phase, PoaError};
use rtorb_interop::ours::Ours;
use rtorb_interop::scratch::Scratch;
use rtorb_interop::servants::Cubes;
use rtorb_interop::stubs::Cubit;
use std::sync::Arc;

#[test]
fn its_socket_file_is_gone_and_later_clients_are_refused() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let scratch = Scratch::new();
        let path = scratch.join(name);
        let endpoint = format!("uiop://{}", path.display());
        let builder = Orb::builder()
            .dispatch(dispatch)
            .listen(&endpoint)
            .expect("an endpoint");
        let ours = Ours::serve_as(builder);
        let text = ours.text(ours.cubit.as_object());
        assert!(path.exists(), "{name}: it listens");
        drop(ours);
        assert!(!path.exists(), "{name}: the file is left behind");
        let client = Orb::builder().build().expect("an ORB");
        let gone = client
            .string_to_object(&text)
            .expect("a reference")
            .is_a("IDL:Cubit:1.0")
            .expect_err("no server");
        assert_eq!(gone.kind, ExceptionKind::Transient, "{gone}");
        assert_eq!(gone.cause.map(|cause| cause.phase), Some(Phase::Connect));
    }
}

#[test]
fn its_servants_are_dropped_although_they_hold_the_orb() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let orb = Orb::builder().dispatch(dispatch).build().expect("an ORB");
        let root = orb.root_poa().expect("a port");
        let servant = Arc::new(Cubes { orb: orb.clone() });
        let seen = Arc::downgrade(&servant);
        let _: Cubit = root.activate(servant).expect("room");
        orb.shutdown();
        orb.run().expect("nothing to serve any more");
        assert_eq!(seen.strong_count(), 0, "{name}: a servant is left");
        let late: Result<Cubit, _> = root.activate(Cubes { orb: orb.clone() });
        assert!(
            matches!(late, Err(PoaError::System(_))),
            "{name}: an adapter that is destroyed takes no servant"
        );
    }
}

#[test]
fn an_orb_that_is_shut_down_before_it_listens_never_does() {
    let scratch = Scratch::new();
    let path = scratch.join("never");
    let builder = Orb::builder().listen(&format!("uiop://{}", path.display()));
    let orb = builder.expect("an endpoint").build().expect("an ORB");
    orb.shutdown();
    orb.run().expect("it ends at once");
    assert!(!path.exists() && orb.endpoints().is_empty());
}

#[test]
fn odd_times_are_made_ones_that_the_system_takes() {
    for odd in [std::time::Duration::ZERO, std::time::Duration::MAX] {
        let limits = rtorb::Limits {
            send_timeout: odd,
            ..rtorb::Limits::default()
        };
        let ours = Ours::serve_as(Orb::builder().limits(limits));
        let builder = Orb::builder().connect_timeout(odd.max(std::time::Duration::from_secs(1)));
        let client = builder.round_trip_timeout(Some(std::time::Duration::MAX));
        let text = ours.text(ours.cubit.as_object());
        let object = client.build().expect("an ORB").string_to_object(&text);
        assert_eq!(object.expect("legal").is_a("IDL:Cubit:1.0"), Ok(true));
    }
}

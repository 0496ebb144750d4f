//! What is left of a server that was shut down: nothing.

use rtorb::Orb;
use rtorb_interop::ours::Ours;
use rtorb_interop::scratch::Scratch;

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

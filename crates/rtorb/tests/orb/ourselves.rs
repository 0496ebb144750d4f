//! What a server knows of itself when one of its servants calls it.

use rtorb::exception::OMG;
use rtorb::{DispatchStrategy, ExceptionKind, Orb};
use rtorb_tests::ours::Ours;
use rtorb_tests::stubs::exchange::Party;

#[test]
fn a_reactive_server_knows_itself_by_each_of_its_names() {
    // Its only thread is in the call already: waiting for itself would last for ever.
    for endpoint in [
        "iiop://127.0.0.1:0",
        "iiop://127.0.0.1:0/hostname_in_ior=localhost",
    ] {
        let reactive = Orb::builder().dispatch(DispatchStrategy::Reactive);
        let ours = Ours::serve_as(reactive.listen(endpoint).expect("an endpoint"));
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

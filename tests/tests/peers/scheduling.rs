//! The scheduling service, with a client of another ORB.

use rtorb::Orb;
use rtorb_services::scheduling::{Scheduling, SchedulingConfig};
use rtorb_tests::peers::omniorb::omniorb;

#[test]
fn omniorb_calls_every_operation() {
    let Some(omniorb) = omniorb() else { return };
    let orb = Orb::builder().build().expect("the ORB can be built");
    let service = Scheduling::serve(&orb, SchedulingConfig::default()).expect("a service");
    orb.root_poa().expect("a root adapter").manager().activate();
    let server = orb.clone();
    let running = std::thread::spawn(move || server.run().expect("the ORB runs"));
    let reference = service.reference().as_object().to_string();
    let checks = omniorb.call("scheduler_client", &reference, &[]);
    assert!(checks.len() >= 27, "{checks:?}");
    orb.shutdown();
    running.join().expect("the ORB ends");
}

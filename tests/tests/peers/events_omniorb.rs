//! omniORB's suppliers and consumers at our event channel: the real-time interfaces, and the plain face.

use std::thread::{self, JoinHandle};

use rtorb::{DispatchStrategy, Limits, ObjectRef, Orb, OrbError};
use rtorb_services::events::plain::{PlainChannel, PlainConfig};
use rtorb_services::events::{Channel, ChannelConfig, strategies};
use rtorb_tests::peers::omniorb::omniorb;
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;

#[test]
fn events_of_its_suppliers_reach_its_consumers() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let ours = Ours::serve();
    let reference = text(ours.channel.reference().as_object());
    let ready = scratch.join("ready");
    // The consumer has a timeout each 20 ms as well.
    let options = ["60", "--interval", "20", IN_ORDER[0], IN_ORDER[1]];
    let consumer = omniorb.begin("rtec_consumer", &reference, &ready, &options);
    omniorb.call("rtec_supplier", &reference, &["60"]);
    consumer();
    ours.end();
}

#[test]
fn a_conjunction_comes_together_at_its_consumer() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let ours = Ours::serve();
    let reference = text(ours.channel.reference().as_object());
    let ready = scratch.join("ready");
    let consumer = omniorb.begin("rtec_consumer", &reference, &ready, &["2", "--conjunction"]);
    omniorb.call("rtec_supplier", &reference, &["5", "--type", "20"]);
    omniorb.call("rtec_supplier", &reference, &["1", "--type", "21"]);
    consumer();
    ours.end();
}

#[test]
fn what_its_plain_suppliers_push_reaches_its_plain_consumers() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let ours = Ours::serve();
    let poa = ours.orb.root_poa().expect("the root adapter");
    let plain = PlainChannel::serve(&poa, ours.channel.reference(), PlainConfig::default());
    let plain = plain.expect("a plain channel");
    let reference = text(plain.reference().as_object());
    let ready = scratch.join("ready");
    let consumer = omniorb.begin("plain_consumer", &reference, &ready, &["100"]);
    omniorb.call("plain_supplier", &reference, &["100"]);
    consumer();
    // The channel counts what its consumers have taken already.
    until("all is counted", || {
        let seen = plain.statistics();
        let counts = (seen.pushed, seen.delivered, seen.suppliers, seen.consumers);
        (counts == (100, 100, 0, 0)).then_some(())
    });
    plain.destroy();
    ours.end();
}

/// omniORB serves requests of one connection with many threads at once, and so mixes up oneways, unless it may have only one.
const IN_ORDER: [&str; 2] = ["-ORBmaxServerThreadPerConnection", "1"];

/// A channel of ours in this process.
struct Ours {
    orb: Orb,
    channel: Channel,
    serving: JoinHandle<Result<(), OrbError>>,
}

impl Ours {
    fn serve() -> Self {
        let config = ChannelConfig::default();
        let orb = Orb::builder()
            .strategies(strategies(DispatchStrategy::ThreadPerConnection))
            .limits(config.limits(Limits::default()));
        let orb = orb.build().expect("the ORB can be built");
        let channel = Channel::serve(&orb, config).expect("the channel can be served");
        let server = orb.clone();
        let serving = thread::spawn(move || server.run());
        Self {
            orb,
            channel,
            serving,
        }
    }

    fn end(self) {
        self.channel.destroy();
        self.orb.shutdown();
        let served = self.serving.join().expect("it does not panic");
        served.expect("it served");
    }
}

fn text(object: &ObjectRef) -> String {
    object.to_string()
}

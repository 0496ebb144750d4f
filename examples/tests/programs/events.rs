//! The examples of docs/how-to/events.md work.

use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_services::events::{Channel, ChannelConfig, strategies};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn the_consumer_gets_what_the_supplier_pushes() {
    let config = ChannelConfig::default();
    let orb = Orb::builder()
        .strategies(strategies(DispatchStrategy::ThreadPerConnection))
        .listen("iiop://127.0.0.1:0")
        .expect("an endpoint")
        .best_effort()
        .on_warning(|_| {})
        .limits(config.limits(Limits::default()))
        .build()
        .expect("an ORB");
    let channel = Channel::serve(&orb, config).expect("a channel");
    let reference = orb.object_to_string(channel.reference().as_object());
    let server = orb.clone();
    let serving = std::thread::spawn(move || server.run());

    let mut consumer = Command::new(env!("CARGO_BIN_EXE_events-consumer"));
    let consumer = consumer.args([&reference, "0"]).stdout(Stdio::piped());
    let mut consumer = consumer.spawn().expect("the consumer runs");
    let said = consumer.stdout.take().expect("standard output is piped");
    let mut said = BufReader::new(said).lines();
    let mut line = || said.next().expect("a line").expect("text");
    assert_eq!(line(), "connected");
    let mut supplier = Command::new(env!("CARGO_BIN_EXE_events-supplier"));
    let supplier = supplier.args([&reference, "0"]).output();
    let supplier = supplier.expect("the supplier runs");
    let told = String::from_utf8_lossy(&supplier.stderr);
    assert!(supplier.status.success(), "{told}");
    assert!(String::from_utf8_lossy(&supplier.stdout).starts_with("100 events"));
    assert_eq!(line(), "100 events");
    assert!(consumer.wait().expect("it is ours").success());

    channel.destroy();
    orb.shutdown();
    let served = serving.join().expect("the server does not panic");
    served.expect("it serves");
}

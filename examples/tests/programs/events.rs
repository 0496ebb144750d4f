//! The examples of docs/how-to/events.md work.

use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_services::events::{Channel, ChannelConfig, strategies};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_consumer_gets_what_the_supplier_pushes() {
    let config = ChannelConfig::default();
    let orb = Orb::builder()
        .strategies(strategies(DispatchStrategy::ThreadPerConnection))
        .listen("iiop://127.0.0.1:0")
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
    let consumer = consumer.arg(&reference).stdout(Stdio::piped());
    let mut consumer = consumer.spawn().expect("the consumer runs");
    let said = consumer.stdout.take().expect("standard output is piped");
    let mut said = BufReader::new(said).lines();
    let mut line = || said.next().expect("a line").expect("text");
    assert_eq!(line(), "connected");
    let mut supplier = Command::new(env!("CARGO_BIN_EXE_events-supplier"));
    let supplier = supplier.arg(&reference).output();
    let supplier = supplier.expect("the supplier runs");
    let told = String::from_utf8_lossy(&supplier.stderr);
    assert!(supplier.status.success(), "{told}");
    for degrees in 20..30 {
        assert_eq!(line(), format!("{degrees} degrees"));
    }
    assert!(consumer.wait().expect("it is ours").success());

    channel.destroy();
    orb.shutdown();
    let served = serving.join().expect("the server does not panic");
    served.expect("it serves");
}

#[test]
fn the_page_shows_the_examples_as_they_are() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| {
        fs::read_to_string(workspace.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let page = read("docs/how-to/events.md");
    for program in ["events-supplier", "events-consumer"] {
        let text = read(&format!("examples/src/bin/{program}.rs"));
        let block = format!("```rust,ignore\n{text}```\n");
        assert!(
            page.contains(&block),
            "docs/how-to/events.md shows another {program}"
        );
    }
}

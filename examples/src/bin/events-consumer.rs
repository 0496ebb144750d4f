//! Prints ten temperatures from the channel whose reference is the argument.
#![forbid(unsafe_code)]

use anyhow::{Context, ensure};
use rtorb::Orb;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::events::client::{Arrival, Received, Receiver, channel_of};
use rtorb_services::events::subscribe::Interest;
use std::io::{Write, stdout};

fn main() -> anyhow::Result<()> {
    let reference = std::env::args()
        .nth(1)
        .context("usage: events-consumer REFERENCE")?;
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build()?;
    let server = orb.clone();
    std::thread::spawn(move || server.run());
    let channel = channel_of(&orb, &reference)?;
    let wanted = Interest::event(1, 20).consumer_qos();
    let receiver = Receiver::connect(&channel, &orb.root_poa()?, &wanted, 100)?;
    writeln!(stdout(), "connected")?;
    let mut arrival = Arrival::default();
    for _ in 0..10 {
        let received = receiver.next(&mut arrival, monotonic_ns() + 30_000_000_000);
        ensure!(
            received == Received::Event,
            "no event in 30 s: {received:?}"
        );
        let degrees: i32 = arrival.event.data.any_value.extract()?;
        writeln!(stdout(), "{degrees} degrees")?;
    }
    Ok(())
}

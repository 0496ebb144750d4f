//! Waits for 100 events of the channel whose reference is the first argument, in the lane of the priority that is the second.
#![forbid(unsafe_code)]

use anyhow::{Context, bail};
use rtorb::Orb;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::events::client::{Arrival, Received, Receiver, channel_of};
use rtorb_services::events::subscribe::Interest;
use std::io::{Write, stderr, stdout};
use std::time::Duration;

const SOURCE: i32 = 1;
const TEMPERATURE: i32 = 20;

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().args(std::env::args().skip(1))?;
    let mut arguments = builder.remaining_arguments().to_vec().into_iter();
    let usage = "usage: events-consumer REFERENCE PRIORITY";
    let reference = arguments.next().context(usage)?;
    let priority: i32 = arguments.next().context(usage)?.parse()?;

    let orb = builder.listen("iiop://127.0.0.1:0")?.build()?;
    let poa = orb.root_poa()?;
    let server = orb.clone();
    let serving = std::thread::spawn(move || server.run());
    let channel = channel_of(&orb, &reference)?;
    // Temperatures, or a word when none has come for a second.
    let wish = Interest::disjunction([
        Interest::event(SOURCE, TEMPERATURE),
        Interest::deadline(Duration::from_secs(1)),
    ]);
    let qos = wish.rt_info(priority).consumer_qos();
    let receiver = Receiver::connect(&channel, &poa, &qos, 1024)?;
    writeln!(stdout(), "connected")?;
    let (mut arrival, end_ns) = (Arrival::default(), monotonic_ns() + 30_000_000_000);
    let mut events = 0;
    while events < 100 {
        match receiver.next(&mut arrival, end_ns) {
            Received::Event if arrival.event.header.r#type == TEMPERATURE => events += 1,
            Received::Event => writeln!(stderr(), "nothing came for a second")?,
            Received::Nothing => bail!("{events} events came in 30 s"),
            Received::Disconnected => bail!("the channel has ended"),
        }
    }
    writeln!(stdout(), "{events} events")?;
    receiver.disconnect()?;
    orb.shutdown();
    serving.join().expect("the server does not panic")?;
    Ok(())
}

//! Pushes 100 events a second into the channel whose reference is the first argument, with the CORBA priority that is the second.
//!
//! `rtorb events serve --lanes 50,10 --ior-file channel.ior` serves such a channel; its reference is what the file has.
#![forbid(unsafe_code)]

use anyhow::Context;
use rtorb::Orb;
use rtorb::any::Any;
use rtorb::rt::Priority;
use rtorb_services::events::client::{Supplier, channel_of};
use rtorb_services::events::pushing::PushPlan;
use rtorb_services::events::subscribe::Publications;
use std::io::{Write, stdout};
use std::time::Duration;

/// What this supplier is, and what it says: types of applications begin at 16.
const SOURCE: i32 = 1;
const TEMPERATURE: i32 = 20;

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().args(std::env::args().skip(1))?;
    let mut arguments = builder.remaining_arguments().to_vec().into_iter();
    let usage = "usage: events-supplier REFERENCE PRIORITY";
    let reference = arguments.next().context(usage)?;
    let priority: i16 = arguments.next().context(usage)?.parse()?;

    let orb = builder.build()?;
    // The thread, its messages, and the channel's thread that takes them.
    orb.rt_current()
        .set_the_priority(Priority::new(priority)?)?;
    let channel = channel_of(&orb, &reference)?;
    let offer = Publications::new().event(SOURCE, TEMPERATURE, 0);
    let supplier = Supplier::connect(&channel, &offer.supplier_qos())?;
    let plan = PushPlan {
        event_type: TEMPERATURE,
        source: SOURCE,
        ttl: 1,
        payload: b"20 degrees".to_vec(),
        any_value: Any::NULL,
        numbered: None,
        count: Some(100),
        period: Duration::from_millis(10),
    };
    let mut latest_ns = 0;
    let pushed = plan.push(
        &supplier,
        || true,
        |late_ns| latest_ns = latest_ns.max(late_ns),
    );
    if let Some(exception) = pushed.failure {
        return Err(exception.into());
    }
    supplier.arrived()?;
    writeln!(
        stdout(),
        "{} events, late by {latest_ns} ns at most",
        pushed.events
    )?;
    supplier.disconnect()?;
    Ok(())
}

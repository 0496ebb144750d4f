//! Pushes ten temperatures into the channel whose reference is the argument.
#![forbid(unsafe_code)]

use anyhow::Context;
use rtorb::Orb;
use rtorb::any::Any;
use rtorb_services::events::client::{Supplier, channel_of};
use rtorb_services::events::{Event, subscribe::Publications};

fn main() -> anyhow::Result<()> {
    let reference = std::env::args()
        .nth(1)
        .context("usage: events-supplier REFERENCE")?;
    let orb = Orb::builder().build()?;
    // Source 1 publishes events of type 20. The types of applications begin at 16.
    let publications = Publications::new().event(1, 20, 0);
    let channel = channel_of(&orb, &reference)?;
    let supplier = Supplier::connect(&channel, &publications.supplier_qos())?;
    for degrees in 20..30_i32 {
        supplier.push(&[Event::new(1, 20, Any::from_value(&degrees)?)])?;
    }
    // A push is a oneway call. This one waits until the channel has all events.
    supplier.arrived()?;
    Ok(())
}

//! Shuts off the heater of the thermostat whose reference is the first argument, with priority 60.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::Orb;
use rtorb::rt::Priority;
use rtorb_thermostat::home::Thermostat;
use std::io::{Write, stdout};
use std::time::Instant;

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().args(std::env::args().skip(1));
    let reference = builder.remaining_arguments().first().cloned();
    let reference = reference.context("usage: thermostat-shut-off REFERENCE")?;
    let orb = builder.build()?;

    orb.rt_current().set_the_priority(Priority::new(60)?)?;
    let object = orb.string_to_object(&reference)?;
    object.validate_connection()?; // connects now, so that the call does not have to
    let thermostat = Thermostat::unchecked_narrow(object);
    let start = Instant::now();
    thermostat.shut_off()?;
    writeln!(stdout(), "off after {:?}", start.elapsed())?;
    Ok(())
}

//! Prints the temperatures of the thermostat whose reference is the first argument.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::Orb;
use rtorb_thermostat::home::Thermostat;
use std::io::{Write, stdout};

fn main() -> anyhow::Result<()> {
    let reference = std::env::args()
        .nth(1)
        .context("usage: thermostat-read REFERENCE")?;
    let orb = Orb::builder().build()?;
    let thermostat: Thermostat = orb.string_to_reference(&reference)?;
    writeln!(
        stdout(),
        "{:.1} degrees, wanted: {:.1}",
        thermostat.temperature()?,
        thermostat.target()?
    )?;
    Ok(())
}

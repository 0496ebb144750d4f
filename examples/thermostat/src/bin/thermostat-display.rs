//! Prints each new temperature of the thermostat whose reference is the first argument.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::{Orb, SystemException};
use rtorb_thermostat::home::{Display, DisplayServant, Thermostat};
use std::io::{Write, stdout};

struct Terminal;

impl DisplayServant for Terminal {
    fn show(&self, celsius: f64) -> Result<(), SystemException> {
        // If nobody reads the output, the thermostat need not know.
        let _ = writeln!(stdout(), "{celsius:.1}");
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().args(std::env::args().skip(1));
    let reference = builder.remaining_arguments().first().cloned();
    let reference = reference.context("usage: thermostat-display REFERENCE")?;
    let orb = builder.build()?;

    let display: Display = orb.root_poa()?.activate(Terminal)?;
    let thermostat: Thermostat = orb.string_to_reference(&reference)?;
    thermostat.attach(Some(&display))?;
    writeln!(
        stdout(),
        "attached at {:.1} degrees",
        thermostat.temperature()?
    )?;
    orb.run()?;
    Ok(())
}

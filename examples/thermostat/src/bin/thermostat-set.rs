//! Sets the wanted temperature of the thermostat whose reference is the first argument to the second.
#![forbid(unsafe_code)]
use anyhow::{Context, bail};
use rtorb::{ExceptionKind, Orb};
use rtorb_thermostat::home::{Thermostat, ThermostatSetTargetError};
use std::io::{Write, stdout};
use std::time::Duration;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: thermostat-set REFERENCE CELSIUS";
    let reference = arguments.next().context(usage)?;
    let celsius: f64 = arguments.next().context(usage)?.parse()?;

    let orb = Orb::builder()
        .round_trip_timeout(Some(Duration::from_secs(2)))
        .build()?;
    let thermostat = Thermostat::unchecked_narrow(orb.string_to_object(&reference)?);
    match thermostat.set_target(celsius) {
        Ok(()) => writeln!(stdout(), "wanted: {:.1}", thermostat.target()?)?,
        Err(ThermostatSetTargetError::OutOfRange(limits)) => bail!(
            "the thermostat heats to {} degrees at least and {} at most",
            limits.lowest,
            limits.highest
        ),
        Err(ThermostatSetTargetError::System(e)) if e.kind == ExceptionKind::Transient => {
            bail!("the thermostat cannot be reached: {e}")
        }
        Err(e) => return Err(e.into()),
    }
    Ok(())
}

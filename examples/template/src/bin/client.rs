//! Moves the valve whose reference is the first argument to the position that is the second.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::Orb;
use std::io::{Write, stdout};

rtorb::include_idl!("valve");

use valve::OutOfRange;

fn main() -> anyhow::Result<()> {
    let usage = "usage: client REFERENCE PERCENT";
    let mut arguments = std::env::args().skip(1);
    let reference = arguments.next().context(usage)?;
    let percent = arguments.next().context(usage)?.parse().context(usage)?;

    let orb = Orb::builder().build()?;
    let valve: Valve = orb.string_to_reference(&reference)?;
    match valve.move_to(percent) {
        Ok(()) => writeln!(stdout(), "The valve is at {} %.", valve.position()?)?,
        Err(ValveMoveToError::OutOfRange(OutOfRange { percent })) => {
            writeln!(stdout(), "The valve cannot move to {percent} %.")?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

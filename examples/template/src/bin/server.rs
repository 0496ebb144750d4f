//! Serves a valve: prints its reference, and answers until it is stopped.
#![forbid(unsafe_code)]
use std::io::{Write, stdout};
use std::sync::Mutex;

use rtorb::{Orb, SystemException};

rtorb::include_idl!("valve");

use valve::OutOfRange;

/// A valve that is closed at first.
#[derive(Default)]
struct Simulated {
    percent: Mutex<f64>,
}

impl ValveServant for Simulated {
    fn position(&self) -> Result<f64, SystemException> {
        Ok(*self.percent.lock().expect("no holder panics"))
    }

    fn move_to(&self, percent: f64) -> Result<(), ValveMoveToError> {
        if !(0.0..=100.0).contains(&percent) {
            return Err(OutOfRange { percent }.into());
        }
        *self.percent.lock().expect("no holder panics") = percent;
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let orb = Orb::builder().args(std::env::args()).build()?;
    let valve: Valve = orb.root_poa()?.activate(Simulated::default())?;
    writeln!(stdout(), "{valve}")?;
    orb.run()?;
    Ok(())
}

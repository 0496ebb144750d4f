//! Serves a thermostat, and writes its reference to the file that is the first argument.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::Orb;
use rtorb_thermostat::Room;
use rtorb_thermostat::home::Thermostat;
use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().args(std::env::args().skip(1));
    let usage = "usage: thermostat-server FILE";
    let file = builder
        .remaining_arguments()
        .first()
        .context(usage)?
        .clone();
    let orb = builder.build()?;

    let room = Arc::new(Room::new());
    let thermostat: Thermostat = orb.root_poa()?.activate(Arc::clone(&room))?;
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(100));
            room.step();
        }
    });
    // Only once it serves: a client that reads the file finds a server.
    orb.run_with(|| {
        fs::write(&file, thermostat.to_string())?;
        Ok(writeln!(stdout(), "the reference is in {file}")?)
    })
}

//! Serves motors as devices of Tango, by the names that are its arguments, until it is stopped.
#![forbid(unsafe_code)]

use std::io::{Write, stdout};

use anyhow::Context;
use rtorb::Orb;
use rtorb::endpoint::Endpoint;
use rtorb_tango::DeviceServer;
use rtorb_tango::motor::{self, Motor};

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().args(std::env::args().skip(1));
    let mut names = builder.remaining_arguments().to_vec();
    if names.is_empty() {
        names.push("test/motor/1".to_owned());
    }
    let orb = builder.build()?;
    let server = DeviceServer::new(&orb, "RtorbMotor", "test")?;
    for name in &names {
        server.export(name, motor::class(), Motor::default())?;
    }
    let address = orb
        .endpoints()
        .into_iter()
        .find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port } => Some(format!("{host}:{port}")),
            _ => None,
        });
    let address = address
        .context("clients of Tango need a TCP endpoint: -ORBListenEndpoints iiop://HOST:PORT")?;
    for name in &names {
        writeln!(stdout(), "tango://{address}/{name}#dbase=no")?;
    }
    orb.run()?;
    Ok(())
}

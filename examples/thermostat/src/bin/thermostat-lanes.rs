//! Serves a thermostat by two lanes: calls of priority 60 share nothing with calls of priority 10.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::rt::{LanedThreadpool, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, PoaPolicies, SystemException};
use rtorb_thermostat::Room;
use rtorb_thermostat::home::Thermostat;
use std::fs;
use std::io::{Write, stderr, stdout};

fn main() -> anyhow::Result<()> {
    let builder = Orb::builder().on_warning(|warning| {
        let _ = writeln!(stderr(), "{warning}");
    });
    let builder = builder.args(std::env::args().skip(1));
    let file = builder.remaining_arguments().first().cloned();
    let file = file.context("usage: thermostat-lanes FILE")?;
    let orb = builder.build()?;

    let rt_orb = orb.rt_orb();
    let pool = rt_orb.create_threadpool_with_lanes(LanedThreadpool {
        lanes: vec![lane(60)?, lane(10)?],
        ..LanedThreadpool::default()
    })?;
    let model =
        rt_orb.create_priority_model_policy(PriorityModel::ClientPropagated, Priority::new(10)?);
    let policies = PoaPolicies::default()
        .with(model)
        .with(rt_orb.create_threadpool_policy(pool));
    let poa = orb.root_poa()?.create_poa("Rooms", policies)?;
    let thermostat: Thermostat = poa.activate(Room::new())?;
    // Only once it serves: a client that reads the file finds a server.
    orb.run_with(|| {
        fs::write(&file, thermostat.to_string())?;
        Ok(writeln!(stdout(), "the reference is in {file}")?)
    })
}

/// A lane with one thread.
fn lane(priority: i16) -> Result<ThreadpoolLane, SystemException> {
    Ok(ThreadpoolLane {
        lane_priority: Priority::new(priority)?,
        static_threads: 1,
        ..ThreadpoolLane::default()
    })
}

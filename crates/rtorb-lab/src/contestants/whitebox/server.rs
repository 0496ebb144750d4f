//! The counted server: one object for low-priority clients and one for the high-priority one.

use std::error::Error;

use rtorb::{Orb, Strategies};

use super::Priorities;
use crate::contestants::cubit::{Cuber, objects};
use crate::contestants::real_time::{declared, lane};
use crate::contestants::server::Server;

/// Makes a server of that preset. Where there is real-time scheduling, its objects declare their priorities, and there is a lane for each
/// of the two (for presets that have lanes).
///
/// # Errors
/// What the ORB said.
pub fn open(
    endpoint: &str,
    preset: &str,
    priorities: Priorities,
) -> Result<Server, Box<dyn Error>> {
    let mut builder = Orb::builder()
        .strategies(Strategies::preset(preset)?)
        .listen(endpoint);
    if priorities.low > 0 {
        builder = builder.lanes([lane(priorities.low)?, lane(priorities.high)?]);
    }
    let orb = builder.build()?;
    let references = [
        activate(&orb, "low", priorities.low)?,
        activate(&orb, "high", priorities.high)?,
    ];
    Ok(Server::of(orb, references))
}

fn activate(orb: &Orb, adapter: &str, priority: u8) -> Result<String, String> {
    objects::activate(orb, adapter, declared(priority)?, Cuber::new(orb.clone()))
}

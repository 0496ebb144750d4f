//! What runs in the world.

mod call_end;
mod callbacks;
mod calls;
mod events;
mod gateways;
mod lanes;
mod naming;
mod server;
mod started;
mod worker;

use rtorb::DispatchStrategy;

use crate::random::Random;
use crate::world::faults::Faults;

/// A system: what goes wrong in it, and what its first thread does.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) name: &'static str,
    pub(crate) faults: fn(&mut Random) -> Faults,
    pub(crate) run: fn(Random),
}

pub(crate) const SYSTEMS: &[System] = &[
    calls::SYSTEM,
    lanes::SYSTEM,
    events::SYSTEM,
    naming::SYSTEM,
    gateways::SYSTEM,
    started::SYSTEM,
    callbacks::SYSTEM,
];

/// Draws a dispatch strategy of users. The last one, a thread for each request, serves comparisons alone.
fn dispatch(random: &mut Random) -> DispatchStrategy {
    let users = DispatchStrategy::ALL.len() - 1;
    random.choose(&DispatchStrategy::ALL[..users]).1
}

/// Returns the system of this name, which a plant or a found bug gives.
pub(crate) fn named(name: &str) -> &'static System {
    let mut systems = SYSTEMS.iter();
    let named = systems.find(|system| system.name == name);
    named.unwrap_or_else(|| panic!("there is no system {name}"))
}

//! What runs in the world.

mod budgets;
mod call_end;
mod callbacks;
mod calls;
mod events;
mod gateways;
mod held;
mod hostile;
mod lanes;
mod naming;
mod raw;
mod server;
mod started;
mod worker;

use rtorb::rt::{Priority, ThreadpoolLane};
use rtorb::{DispatchStrategy, OrbBuilder};

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
    held::SYSTEM,
    budgets::SYSTEM,
    hostile::SYSTEM,
];

/// Draws a dispatch strategy of users. The last one, a thread for each request, serves comparisons alone.
fn dispatch(random: &mut Random) -> DispatchStrategy {
    let users = DispatchStrategy::ALL.len() - 1;
    random.choose(&DispatchStrategy::ALL[..users]).1
}

/// Chooses a dispatch strategy, and draws lanes for one that has some.
fn dispatched(builder: OrbBuilder, dispatch: DispatchStrategy, random: &mut Random) -> OrbBuilder {
    let lane = |priority, threads| ThreadpoolLane {
        lane_priority: Priority::new(priority).expect("it is in range"),
        static_threads: threads,
        ..ThreadpoolLane::default()
    };
    let builder = builder.dispatch(dispatch);
    match dispatch {
        DispatchStrategy::Lanes | DispatchStrategy::FilterChain => {
            builder.lanes([lane(0, 1 + random.below(2) as u32), lane(20, 1)])
        }
        _ => builder,
    }
}

/// Returns the system of this name, which a plant or a found bug gives.
pub(crate) fn named(name: &str) -> &'static System {
    let mut systems = SYSTEMS.iter();
    let named = systems.find(|system| system.name == name);
    named.unwrap_or_else(|| panic!("there is no system {name}"))
}

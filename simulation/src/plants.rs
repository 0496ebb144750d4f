//! Planted bugs: each is one line of the ORB that a run can turn on, to show that the simulation finds it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A planted bug.
#[derive(Debug)]
pub(crate) struct Plant {
    pub(crate) name: &'static str,
    /// What it does wrong.
    pub(crate) what: &'static str,
    /// The system that finds it.
    pub(crate) system: &'static str,
    /// Within so many seeds from 0.
    pub(crate) seeds: u64,
}

pub(crate) const PLANTS: &[Plant] = &[];

/// The place of the one that is on, and 1; 0 for none.
static ON: AtomicUsize = AtomicUsize::new(0);

/// Turns a bug on.
pub(crate) fn plant(name: &str) -> Option<&'static Plant> {
    let place = PLANTS.iter().position(|plant| plant.name == name)?;
    ON.store(place + 1, Ordering::Relaxed);
    PLANTS.get(place)
}

pub(crate) fn is_planted(name: &str) -> bool {
    let on = ON.load(Ordering::Relaxed).checked_sub(1);
    on.and_then(|place| PLANTS.get(place))
        .is_some_and(|plant| plant.name == name)
}

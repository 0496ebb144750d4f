//! The counted server: one object for low-priority clients and one for the high-priority one.

use std::error::Error;

use rtorb::{Orb, Strategies};
use serde::de::IgnoredAny;

use super::Priorities;
use crate::contestants::cubit::{Cuber, objects};
use crate::contestants::real_time::{declared, lane};
use crate::processes::questions::serve_beside;

/// A server that listens, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    orb: Orb,
    /// Of the object for low-priority clients and of that for the high-priority one.
    references: [String; 2],
}

impl Server {
    /// Makes an ORB of that preset. Where there is real-time scheduling, its objects declare their priorities, and there is a
    /// lane for each of the two (for presets that have lanes).
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(
        endpoint: &str,
        preset: &str,
        priorities: Priorities,
    ) -> Result<Self, Box<dyn Error>> {
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
        Ok(Self { orb, references })
    }

    /// Serves, and answers the question for its counts, until standard input ends; then the process ends.
    ///
    /// # Errors
    /// What the host refused.
    pub fn run(&self) -> Result<(), String> {
        let answer = |_: IgnoredAny| Err::<u64, _>("it is asked for its counts alone".to_owned());
        serve_beside(&self.orb, &self.references.join(" "), answer)
    }
}

fn activate(orb: &Orb, adapter: &str, priority: u8) -> Result<String, String> {
    objects::activate(orb, adapter, declared(priority)?, Cuber::new(orb.clone()))
}

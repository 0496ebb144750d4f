//! The server: an object for urgent calls and one for bulk data, each with a lane of its own.

use rtorb::Orb;
use rtorb::rt::Policy;

use super::{BULK, URGENT, builder, tcp};
use crate::contestants::cubit::{Cuber, objects};
use crate::contestants::real_time::{declared, lane};

/// A server that listens, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    orb: Orb,
    /// Of the object for urgent calls and of that for bulk data.
    references: [String; 2],
}

impl Server {
    /// Makes an ORB that listens at the endpoint. With `marks`, the packets of replies have the marks of the lane's priority.
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(marks: bool, endpoint: &str) -> Result<Self, String> {
        let orb = builder()?
            .lanes([lane(URGENT)?, lane(BULK)?])
            .listen(endpoint)
            .build()
            .map_err(|error| error.to_string())?;
        let references = [
            activate(&orb, "urgent", URGENT, marks)?,
            activate(&orb, "bulk", BULK, marks)?,
        ];
        Ok(Self { orb, references })
    }

    /// The references of the two objects.
    #[must_use]
    pub fn references(&self) -> &[String; 2] {
        &self.references
    }

    /// Its ORB, to shut it down.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.orb
    }

    /// Serves until the ORB is shut down.
    ///
    /// # Errors
    /// What the host refused.
    pub fn run(&self) -> Result<(), String> {
        self.orb.run().map_err(|error| error.to_string())
    }
}

fn activate(orb: &Orb, adapter: &str, priority: u8, marks: bool) -> Result<String, String> {
    let policies = declared(priority)?.with(Policy::ServerProtocol(tcp(marks)));
    objects::activate(orb, adapter, policies, Cuber::new(orb.clone()))
}

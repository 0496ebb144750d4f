//! The server: an object for urgent calls and one for bulk data, each with a lane of its own.

use rtorb::rt::{Policy, PriorityModel};
use rtorb::{Orb, PoaPolicies};

use super::{BULK, URGENT, builder, corba, tcp};
use crate::contestants::cubit::Cuber;
use crate::contestants::cubit::idl::Cubit;
use crate::contestants::square_wave::receiver::lane;

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
            .and_then(rtorb::OrbBuilder::build)
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
    let policies = PoaPolicies::default()
        .with(Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: corba(priority)?,
        })
        .with(Policy::ServerProtocol(tcp(marks)));
    let root = orb.root_poa().map_err(|exception| exception.to_string())?;
    let poa = root
        .create_poa(adapter, policies)
        .map_err(|error| error.to_string())?;
    let cubit: Cubit = poa
        .activate(Cuber::new(orb.clone()))
        .map_err(|error| error.to_string())?;
    Ok(orb.object_to_string(cubit.as_object()))
}

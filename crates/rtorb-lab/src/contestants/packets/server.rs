//! The server: an object for urgent calls and one for bulk data, each with a lane of its own.

use rtorb::Orb;
use rtorb::rt::Policy;

use super::{BULK, URGENT, builder, tcp};
use crate::contestants::cubit::{Cuber, objects};
use crate::contestants::real_time::{declared, lane};
use crate::contestants::server::Server;

/// Makes a server that listens at the endpoint, with an object for urgent calls and one for bulk data. With `marks`, the packets of
/// replies have the marks of the lane's priority.
///
/// # Errors
/// What the ORB said.
pub fn open(marks: bool, endpoint: &str) -> Result<Server, String> {
    let orb = builder()?
        .lanes([lane(URGENT)?, lane(BULK)?])
        .listen(endpoint)
        .build()
        .map_err(|error| error.to_string())?;
    let references = [
        activate(&orb, "urgent", URGENT, marks)?,
        activate(&orb, "bulk", BULK, marks)?,
    ];
    Ok(Server::of(orb, references))
}

fn activate(orb: &Orb, adapter: &str, priority: u8, marks: bool) -> Result<String, String> {
    let policies = declared(priority)?.with(Policy::ServerProtocol(tcp(marks)));
    objects::activate(orb, adapter, policies, Cuber::new(orb.clone()))
}

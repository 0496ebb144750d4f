//! The server and the clients as processes.

use super::clients::Clients;
use super::{Priorities, server, start_counting};
use crate::processes::child::{Role, arguments, number};

/// Both count what their threads do.
pub(crate) const ROLES: &[Role] = &[
    Role::here("whitebox-server", |words| {
        let [endpoint, preset, low, high] = arguments(words)?;
        start_counting();
        let server = server::open(endpoint, preset, priorities(low, high)?);
        server.map_err(|error| error.to_string())?.run()
    }),
    Role::here("whitebox-clients", |words| {
        let [preset, low, high, low_object, high_object] = arguments(words)?;
        start_counting();
        let objects = [low_object, high_object];
        let clients = Clients::start(preset, priorities(low, high)?, objects);
        let clients = clients.map_err(|error| error.to_string())?;
        clients.serve()
    }),
];

fn priorities(low: &str, high: &str) -> Result<Priorities, String> {
    Ok(Priorities {
        low: number(low)?,
        high: number(high)?,
    })
}

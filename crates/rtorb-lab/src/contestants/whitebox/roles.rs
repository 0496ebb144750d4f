//! The server and the clients as processes.

use super::clients::Clients;
use super::{Priorities, server, start_counting};
use crate::processes::child::{NOT_ITS_ARGUMENTS, Role, number};

/// Both count what their threads do.
pub(crate) const ROLES: &[Role] = &[
    Role::here("whitebox-server", |words| match *words {
        [endpoint, preset, low, high] => {
            start_counting();
            let server = server::open(endpoint, preset, priorities(low, high)?);
            server.map_err(|error| error.to_string())?.run()
        }
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    }),
    Role::here("whitebox-clients", |words| match *words {
        [preset, low, high, low_object, high_object] => {
            start_counting();
            let objects = [low_object, high_object];
            let clients = Clients::start(preset, priorities(low, high)?, objects);
            let clients = clients.map_err(|error| error.to_string())?;
            clients.serve()
        }
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    }),
];

fn priorities(low: &str, high: &str) -> Result<Priorities, String> {
    Ok(Priorities {
        low: number(low)?,
        high: number(high)?,
    })
}

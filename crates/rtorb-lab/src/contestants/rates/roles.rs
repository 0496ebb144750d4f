//! The server and the clients as processes.

use super::clients::Clients;
use super::server::{RateObject, Server};
use crate::processes::child::{Role, arguments_and_rest, is_tcp};

/// A server with an object for each group of clients, and all clients.
pub(crate) const ROLES: &[Role] = &[
    Role::here("rate-server", |words| {
        let ([endpoint, preset], objects) = arguments_and_rest(words)?;
        let objects = objects.iter().map(|object| object.parse());
        let objects: Vec<RateObject> = objects.collect::<Result<_, _>>()?;
        Server::open(endpoint, preset, &objects)?.run()
    })
    .on_agent(|words| {
        matches!(*words, [endpoint, _, ref objects @ ..]
            if is_tcp(endpoint) && objects.len() <= OBJECTS_MAX)
    }),
    Role::here("rate-clients", |words| {
        let ([preset], references) = arguments_and_rest(words)?;
        Clients::open(preset, references)?.serve()
    }),
];

/// The objects of a server that an agent starts.
const OBJECTS_MAX: usize = 100;

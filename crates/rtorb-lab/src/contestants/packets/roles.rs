//! The server, the clients, and the ends of their link as processes.

use super::clients::Clients;
use super::link::device;
use super::marks;
use super::server::Server;
use crate::processes::child::{NOT_ITS_ARGUMENTS, Role, end_with_input, ready};

/// The keeper of a network namespace; a server with an object for urgent calls and one for bulk data; and clients of both.
pub(crate) const ROLES: &[Role] = &[
    Role::here("network", |_| device::keep()),
    Role::here("packet-server", |words| {
        let [marked, endpoint] = *words else {
            return Err(NOT_ITS_ARGUMENTS.to_owned());
        };
        let server = Server::open(marks(marked)?, endpoint)?;
        end_with_input()?;
        ready(&server.references().join(" "));
        server.run()
    }),
    Role::here("packet-clients", |words| {
        let [marked, urgent, bulk] = *words else {
            return Err(NOT_ITS_ARGUMENTS.to_owned());
        };
        let clients = Clients::open(marks(marked)?, urgent, bulk)?;
        clients.serve()
    }),
];

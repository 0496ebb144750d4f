//! The server, the clients, and the ends of their link as processes.

use super::clients::Clients;
use super::link::device;
use super::{flood, server};
use crate::processes::child::{Role, arguments, value};

/// The keeper of a network namespace; a flood; a server with an object for urgent calls and one for bulk data; and clients of both.
pub(crate) const ROLES: &[Role] = &[
    Role::here("network", device::keep),
    Role::here("packet-flood", |words| {
        let [host] = arguments(words)?;
        flood::serve(host)
    }),
    Role::here("packet-server", |words| {
        let [marked, endpoint] = arguments(words)?;
        server::open(value(marked)?, endpoint)?.run()
    }),
    Role::here("packet-clients", |words| {
        let [marked, urgent, bulk] = arguments(words)?;
        Clients::open(value(marked)?, urgent, bulk)?.serve()
    }),
];

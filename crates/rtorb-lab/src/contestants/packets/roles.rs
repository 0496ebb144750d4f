//! The server, the clients, and the ends of their link as processes.

use super::clients::Clients;
use super::link::device;
use super::{marks, server};
use crate::processes::child::{NOT_ITS_ARGUMENTS, Role};

/// The keeper of a network namespace; a server with an object for urgent calls and one for bulk data; and clients of both.
pub(crate) const ROLES: &[Role] = &[
    Role::here("network", |_| device::keep()),
    Role::here("packet-server", |words| {
        let [marked, endpoint] = *words else {
            return Err(NOT_ITS_ARGUMENTS.to_owned());
        };
        server::open(marks(marked)?, endpoint)?.run()
    }),
    Role::here("packet-clients", |words| {
        let [marked, urgent, bulk] = *words else {
            return Err(NOT_ITS_ARGUMENTS.to_owned());
        };
        Clients::open(marks(marked)?, urgent, bulk)?.serve()
    }),
];

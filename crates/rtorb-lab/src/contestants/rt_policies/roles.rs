//! The servers and the clients as processes.

use super::clients::Clients;
use super::server;
use crate::processes::child::{Role, arguments, arguments_and_rest, lock_memory, value};

/// A server with an object for urgent calls and one for others, which may call those of another server; and clients of both.
pub(crate) const ROLES: &[Role] = &[
    Role::here("rt-policy-server", |words| {
        let ([setting, endpoint], next) = arguments_and_rest(words)?;
        lock_memory();
        server::open(value(setting)?, endpoint, next)?.run()
    }),
    Role::here("rt-policy-clients", |words| {
        let [setting, urgent, others] = arguments(words)?;
        lock_memory();
        Clients::open(value(setting)?, [urgent, others])?.serve()
    }),
];

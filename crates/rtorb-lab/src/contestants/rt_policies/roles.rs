//! The servers and the clients as processes.

use super::Setting;
use super::clients::Clients;
use super::server;
use crate::processes::child::{Role, arguments, arguments_and_rest, lock_memory};

/// A server with an object for urgent calls and one for others, which may call those of another server; and clients of both.
pub(crate) const ROLES: &[Role] = &[
    Role::here("rt-policy-server", |words| {
        let ([policy, setting, endpoint], next) = arguments_and_rest(words)?;
        lock_memory();
        server::open(Setting::of(policy, setting)?, endpoint, next)?.run()
    }),
    Role::here("rt-policy-clients", |words| {
        let [policy, setting, urgent, others] = arguments(words)?;
        lock_memory();
        Clients::open(Setting::of(policy, setting)?, [urgent, others])?.serve()
    }),
];

//! The channel, the consumers and the supplier as processes.

use super::Served;
use super::channel::Server;
use super::consumers::Consumers;
use super::supplier::Supplier;
use crate::processes::child::{Role, arguments, is_tcp, lock_memory, number, value};

/// Those whose events go through the channel.
pub(crate) const ROLES: &[Role] = &[
    Role::here("event-channel", |words| {
        let [endpoint, served] = arguments(words)?;
        lock_memory();
        Server::open(endpoint, &value(served)?)?.run()
    })
    .on_agent(|words| match words {
        [endpoint, served] => {
            is_tcp(endpoint) && value(served).is_ok_and(|served: Served| served.is_bounded())
        }
        _ => false,
    }),
    Role::here("event-consumers", |words| {
        let [endpoint, channel, subscribers] = arguments(words)?;
        lock_memory();
        Consumers::open(endpoint, channel, &value(subscribers)?)?.run()
    }),
    Role::here("event-supplier", |words| {
        let [channel, source, priority] = arguments(words)?;
        lock_memory();
        Supplier::open(channel, number(source)?, number(priority)?)?.serve()
    }),
];

//! The channel, the consumers and the supplier as processes.

use super::Served;
use super::channel::Server;
use super::consumers::Consumers;
use super::supplier::Supplier;
use crate::processes::child::{NOT_ITS_ARGUMENTS, Role, is_tcp, lock_memory, number};

/// Those whose events go through the channel.
pub(crate) const ROLES: &[Role] = &[
    Role::here("event-channel", |words| match *words {
        [endpoint, served] => {
            lock_memory();
            Server::open(endpoint, &served.parse()?)?.run()
        }
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    })
    .on_agent(|words| match words {
        [endpoint, served] => {
            is_tcp(endpoint)
                && served
                    .parse()
                    .is_ok_and(|served: Served| served.is_bounded())
        }
        _ => false,
    }),
    Role::here("event-consumers", |words| match *words {
        [endpoint, channel, subscribers] => {
            lock_memory();
            Consumers::open(endpoint, channel, &subscribers.parse()?)?.run()
        }
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    }),
    Role::here("event-supplier", |words| match *words {
        [channel, source, priority] => {
            lock_memory();
            Supplier::open(channel, number(source)?, number(priority)?)?.serve()
        }
        _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
    }),
];

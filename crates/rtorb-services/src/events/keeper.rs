//! The keeper: one thread of low priority for everything that may wait. It opens connections, pings clients, and drops those that
//! are gone.
//!
//! The ORB's connect timeout and `ping_timeout` bound its waits. While it waits for one reply, a new consumer waits to be opened; a
//! consumer whose connection is open never waits for the keeper.

use super::channel_core::ChannelCore;
use super::consumer::{Consumer, Departure};
use super::supplier::{ChannelSupplier, Presence};
use rtorb::{ExceptionKind, SystemException, with_deadline};
use rtorb_os::clock::monotonic_ns;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Calls that the keeper still has to make.
#[derive(Debug, Default)]
struct PendingCalls {
    /// Dropped consumers to notify.
    disconnected: VecDeque<Arc<Consumer>>,
    /// Clients that have been silent for `ping_every`.
    pings: VecDeque<Client>,
}

#[derive(Debug)]
enum Client {
    Consumer(Arc<Consumer>),
    Supplier(Arc<ChannelSupplier>),
}

/// Works until the channel is stopped, then ends it.
///
/// Before each call that may wait it handles its mailbox and looks for consumers that hang.
pub(crate) fn work(core: &Arc<ChannelCore>) {
    let mailbox = core.mailbox();
    let round_ns = round(core).as_nanos() as u64;
    let mut next_round_ns = monotonic_ns() + round_ns;
    let mut calls = PendingCalls::default();
    while !mailbox.is_stopping() {
        let seen = mailbox.signal().count();
        if let Some(consumer) = mailbox.take() {
            attend(core, consumer, &mut calls);
            continue;
        }
        core.update_observers();
        let now_ns = monotonic_ns();
        if now_ns >= next_round_ns {
            make_round(core, &mut calls, now_ns);
            next_round_ns = monotonic_ns() + round_ns;
        } else if let Some(consumer) = calls.disconnected.pop_front() {
            consumer.connection().notify_disconnected();
        } else if let Some(client) = calls.pings.pop_front() {
            ping(core, &client);
        } else {
            mailbox.signal().wait(seen, Some(next_round_ns));
        }
    }
    end(core);
}

/// Ends the channel: stops dispatching, notifies clients for at most `goodbye_timeout`, and removes all objects.
fn end(core: &ChannelCore) {
    let (consumers, suppliers) = (core.consumers(), core.suppliers());
    for consumer in &consumers {
        consumer.depart(Departure::Disconnected);
    }
    core.lanes().iter().for_each(|lane| lane.stop());
    with_deadline(core.config().goodbye_timeout, || {
        for consumer in &consumers {
            consumer.connection().notify_disconnected();
            core.forget_consumer(consumer);
        }
        for supplier in &suppliers {
            supplier.notify_disconnected();
            core.forget_supplier(supplier.number());
        }
    });
    core.end_objects();
}

/// Opens a consumer's connection, or removes a consumer that has departed.
fn attend(core: &ChannelCore, consumer: Arc<Consumer>, calls: &mut PendingCalls) {
    if let Some(departure) = consumer.departure() {
        core.forget_consumer(&consumer);
        if matches!(departure, Departure::Hung | Departure::Full) {
            calls.disconnected.push_back(consumer);
        }
        return;
    }
    if consumer.must_open() {
        match consumer.connection().open(consumer.lane().priority()) {
            Ok(()) => consumer.opened(),
            Err(_) => drop(consumer.depart(Departure::Dead)),
        }
    }
}

/// Checks all clients: drops those that hang, notes those to ping, removes unconnected proxies, frees departed consumers. Never waits.
fn make_round(core: &ChannelCore, calls: &mut PendingCalls, now_ns: u64) {
    // A client is not noted again before all pings are made.
    let may_ping = calls.pings.is_empty();
    for consumer in core.consumers() {
        if consumer.hangs(now_ns) {
            consumer.depart(Departure::Hung);
        } else if may_ping && is_due(core, consumer.idle_since_ns(), now_ns) {
            calls.pings.push_back(Client::Consumer(consumer));
        }
    }
    for supplier in core.suppliers() {
        if may_ping && is_due(core, supplier.silent_since_ns(), now_ns) {
            calls.pings.push_back(Client::Supplier(supplier));
        }
    }
    core.forget_unconnected(now_ns);
    core.free_departed();
}

/// Pings a client and drops it if it is gone.
fn ping(core: &ChannelCore, client: &Client) {
    match client {
        Client::Consumer(consumer) if consumer.departure().is_some() => {}
        Client::Consumer(consumer) => match consumer.connection().ping() {
            Err(exception) if is_gone(&exception) => drop(consumer.depart(Departure::Dead)),
            // A busy or stopped consumer costs nothing until events wait for it.
            Ok(()) | Err(_) => consumer.note_response(monotonic_ns()),
        },
        Client::Supplier(supplier) => match supplier.ping() {
            Presence::Here => supplier.note_response(monotonic_ns()),
            Presence::Unknown => supplier.postpone_ping(monotonic_ns()),
            Presence::Gone => core.forget_supplier(supplier.number()),
        },
    }
}

/// True if the exception says that the object or its server does not exist; false for a timeout.
fn is_gone(exception: &SystemException) -> bool {
    matches!(
        exception.kind,
        ExceptionKind::ObjectNotExist | ExceptionKind::Transient | ExceptionKind::CommFailure
    )
}

fn is_due(core: &ChannelCore, since_ns: Option<u64>, now_ns: u64) -> bool {
    let ping_ns = core.config().ping_every.as_nanos() as u64;
    since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= ping_ns)
}

/// The time between two rounds: a fraction of the shortest timeout.
fn round(core: &ChannelCore) -> Duration {
    let config = core.config();
    (config.hang_timeout.min(config.ping_every) / ROUNDS).max(ROUND_MIN)
}

/// Rounds within the shortest timeout, so that it is exceeded by a quarter at most.
const ROUNDS: u32 = 4;

/// Shorter rounds cost CPU and gain nothing.
const ROUND_MIN: Duration = Duration::from_millis(5);

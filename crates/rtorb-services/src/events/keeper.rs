//! The keeper: one thread of low priority for everything that may wait. It opens connections, pings clients, and drops those that
//! are gone.
//!
//! The ORB's connect timeout and `ping_timeout` bound each of its waits. After two of them at most it handles its mailbox and looks
//! for consumers that hang. It opens one connection after another: a new consumer, and one whose connection broke, waits for those
//! before it. A consumer whose connection is open never waits for the keeper.

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
    /// Consumers whose connection is to be opened, for the first time or again.
    openings: VecDeque<Arc<Consumer>>,
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
pub(crate) fn work(core: &Arc<ChannelCore>) {
    let mailbox = core.mailbox();
    let round_ns = round(core).as_nanos() as u64;
    let mut next_round_ns = monotonic_ns() + round_ns;
    let mut calls = PendingCalls::default();
    while !mailbox.is_stopping() {
        let seen = mailbox.signal().count();
        let now_ns = monotonic_ns();
        if now_ns >= next_round_ns {
            make_round(core, &mut calls, now_ns);
            next_round_ns = monotonic_ns() + round_ns;
        }
        if let Some(consumer) = mailbox.take() {
            sort(core, consumer, &mut calls);
            continue;
        }
        if let Some(consumer) = calls.openings.pop_front() {
            open(&consumer);
            continue;
        }
        core.update_admission();
        let has_called = core.update_an_observer();
        if let Some(consumer) = calls.disconnected.pop_front() {
            consumer.connection().notify_disconnected();
        } else if let Some(client) = calls.pings.pop_front() {
            ping(core, &client);
        } else if !has_called {
            mailbox.signal().wait(seen, Some(next_round_ns));
        }
    }
    end(core);
}

/// Ends the channel: stops dispatching, notifies clients for at most `goodbye_timeout`, and removes all objects.
fn end(core: &ChannelCore) {
    let (consumers, suppliers) = core.last_clients();
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
        core.update_admission();
    });
    core.end_objects();
}

/// Notes the call that a consumer from the mailbox needs, and removes a consumer that has departed. Never waits.
fn sort(core: &ChannelCore, consumer: Arc<Consumer>, calls: &mut PendingCalls) {
    let Some(departure) = consumer.departure() else {
        calls.openings.push_back(consumer);
        return;
    };
    core.forget_consumer(&consumer);
    calls
        .openings
        .retain(|other| !Arc::ptr_eq(other, &consumer));
    if matches!(departure, Departure::Hung | Departure::Full) {
        calls.disconnected.push_back(consumer);
    }
}

/// Opens a consumer's connection, unless it has departed.
fn open(consumer: &Arc<Consumer>) {
    if consumer.must_open() {
        match consumer.connection().open(consumer.lane().priority()) {
            Ok(()) => consumer.opened(),
            Err(_) => drop(consumer.depart(Departure::Dead)),
        }
    }
}

/// Checks all clients: drops those that hang, notes those to ping, removes unconnected proxies, frees departed consumers, notes
/// observers to call again. Never waits.
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
    core.retry_observers();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::channel_core::tests::{channel_of, connect_with};
    use crate::events::client::Arrival;
    use crate::events::config::{ChannelConfig, Dispatching};
    use crate::events::connection::{ConsumerConnection, NotSent, SendProgress};
    use crate::events::event::{EncodedEvents, Message};
    use rtorb::cdr::CharCodeSet;
    use rtorb::rt::Priority;
    use rtorb_os::clock::sleep_until;
    use std::sync::mpsc;

    /// A connection that takes a part of one message.
    #[derive(Debug)]
    struct Clogged;

    impl ConsumerConnection for Clogged {
        fn push(&self, _: Message<'_>) -> Result<SendProgress, NotSent> {
            Ok(SendProgress::Partly)
        }

        fn flush(&self) -> Result<SendProgress, SystemException> {
            Ok(SendProgress::Partly)
        }

        fn open(&self, _: Priority) -> Result<(), SystemException> {
            Ok(())
        }

        fn ping(&self) -> Result<(), SystemException> {
            Ok(())
        }

        fn notify_disconnected(&self) {}
    }

    /// A consumer that cannot be reached, which takes `HANG_TIMEOUT` twice to find out. It reports the state of another consumer.
    #[derive(Debug)]
    struct Unreachable {
        other: Arc<Consumer>,
        report: mpsc::Sender<Option<Departure>>,
    }

    impl ConsumerConnection for Unreachable {
        fn push(&self, _: Message<'_>) -> Result<SendProgress, NotSent> {
            Err(NotSent::Broken)
        }

        fn flush(&self) -> Result<SendProgress, SystemException> {
            Err(ExceptionKind::CommFailure.into())
        }

        fn open(&self, _: Priority) -> Result<(), SystemException> {
            let _ = self.report.send(self.other.departure());
            sleep_until(monotonic_ns() + 2 * HANG_TIMEOUT.as_nanos() as u64);
            Err(ExceptionKind::Transient.into())
        }

        fn ping(&self) -> Result<(), SystemException> {
            Err(ExceptionKind::Transient.into())
        }

        fn notify_disconnected(&self) {}
    }

    const HANG_TIMEOUT: Duration = Duration::from_millis(20);

    #[test]
    fn consumers_that_hang_are_dropped_between_two_openings() {
        let core = channel_of(ChannelConfig {
            dispatching: Dispatching::Reactive,
            hang_timeout: HANG_TIMEOUT,
            ..ChannelConfig::default()
        });
        let clogged = connect_with(&core, 0, Arc::new(Clogged));
        clogged.opened();
        // No lane's thread gives a consumer its first turn.
        clogged.turn(monotonic_ns());
        let event = Arrival::default().event;
        let bytes = EncodedEvents::of(core::slice::from_ref(&event), CharCodeSet::Latin1);
        let bytes = bytes.expect("it fits");
        let incoming = bytes.incoming(event.header);
        core.dispatch(&incoming, Priority::MIN);
        let (report, reports) = mpsc::channel();
        for _ in 0..2 {
            let unreachable = Unreachable {
                other: Arc::clone(&clogged),
                report: report.clone(),
            };
            connect_with(&core, 0, Arc::new(unreachable));
        }
        let core = Arc::new(core);
        std::thread::scope(|scope| {
            scope.spawn(|| work(&core));
            let late = Duration::from_secs(20);
            let departures = [(); 2].map(|()| reports.recv_timeout(late));
            core.end();
            assert_eq!(departures[1], Ok(Some(Departure::Hung)));
        });
    }
}

//! One connection to an endpoint for all client threads, or one for each band.
//!
//! With the wait strategy `read`, a thread holds the connection for the whole round trip; with the others many threads wait on
//! it at once. A nested call that would have to wait for other calls uses a connection of its own thread, because those calls
//! may wait for the upcall that makes it.

use super::invocation::{Arguments, Invocation};
use super::reply::{CallError, Outcome, Results};
use super::route::SharedEndpoint;
use super::shared::{Others, SharedConnection};
use super::single::SingleConnection;
use super::without_waiting::Unavailable;
use super::{Channel, exclusive, opening};
use crate::clock::{coarse_monotonic_ns, monotonic_ns};
use crate::exception::{Cause, ExceptionKind, Phase, SystemException, local};
use crate::realtime::ClientThread;
use crate::strategies::WaitStrategy;
use crate::wait::connection_thread::ConnectionThreads;
use crate::wait::pending_call::PendingCall;
use crate::wait::reactor::Reactor;
use crate::wait::reply_reader::ReplyReader;
use crate::wait::waiter::CallSlot;
use crate::wait::{SharedWait, lock_until};
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::{Mutex, MutexGuard};
use rtorb_wire::connection::ReplyError;
use std::sync::{Arc, Weak};

/// Sends a call on the shared connection, or on a new one if the server has closed that connection.
pub(super) fn call<'a>(
    multiplexed: &Multiplexed,
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, SystemException> {
    let endpoint = &invocation.route.endpoint;
    if invocation.client.host.would_deadlock(&endpoint.endpoint) {
        return Err(local::WOULD_DEADLOCK);
    }
    let slot = endpoint.connections.slot(multiplexed, invocation);
    let current = match &slot.connection {
        Place::Single(single) => {
            return multiplexed.call_single(invocation, &slot, single, arguments, results);
        }
        Place::Shared(current) => current,
    };
    let mut retries_left = RETRIES_MAX;
    loop {
        let (shared, is_new) = multiplexed.current_of(&slot, current, invocation)?;
        // The server may serve one request of a connection at a time, and earlier requests may wait for this upcall.
        let is_nested = invocation.client.host.is_in_servant();
        let others = if is_nested { Others::None } else { Others::Any };
        let error = match shared.call(invocation, others, arguments, results) {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        if is_nested && error.is_stale() {
            return exclusive::call(&invocation.delayed(), arguments, results);
        }
        if is_nested || retries_left == 0 || !may_retry(&error, is_new) {
            return Err(error.into_exception(invocation));
        }
        invocation.check_time(Phase::Send)?;
        retries_left -= 1;
    }
}

/// Sends the request of a started call, as [`call`] does.
///
/// The connection is the same if a servant starts it: the call may wait behind others, which its deadline bounds.
pub(super) fn start<'a>(
    multiplexed: &Multiplexed,
    invocation: &Invocation<'_>,
    slot: &mut CallSlot,
    arguments: Arguments<'_, 'a>,
) -> Result<PendingCall, SystemException> {
    let endpoint = &invocation.route.endpoint;
    if invocation.client.host.would_deadlock(&endpoint.endpoint) {
        return Err(local::WOULD_DEADLOCK);
    }
    let connection = endpoint.connections.slot(multiplexed, invocation);
    let Place::Shared(current) = &connection.connection else {
        return Err(local::START_UNSHARED);
    };
    let mut retries_left = RETRIES_MAX;
    loop {
        let (shared, is_new) = multiplexed.current_of(&connection, current, invocation)?;
        let error = match shared.start(invocation, is_new, slot, arguments) {
            Ok(started) => return Ok(started),
            Err(error) => error,
        };
        if retries_left == 0 || !may_retry(&error, is_new) {
            return Err(error.into_exception(invocation));
        }
        invocation.check_time(Phase::Send)?;
        retries_left -= 1;
    }
}

/// Uses the connection that all threads use, if it is open and no other thread uses it now.
#[inline]
pub(super) fn at_once<T>(
    multiplexed: &Multiplexed,
    invocation: &Invocation<'_>,
    act: impl FnOnce(&mut SingleConnection) -> T,
) -> Result<T, Unavailable> {
    if !matches!(multiplexed.wait, SharedWait::Read) {
        return Err(Unavailable::Shared);
    }
    let connections = &invocation.route.endpoint.connections;
    let slot = connections
        .known(invocation.channel)
        .ok_or(Unavailable::Unconnected)?;
    let Place::Single(single) = &slot.connection else {
        return Err(Unavailable::Shared);
    };
    let mut held = single.try_lock().ok_or(Unavailable::InUse)?;
    let own = held.as_mut().ok_or(Unavailable::Unconnected)?;
    if own.has_ended_idle(coarse_monotonic_ns()) {
        *held = None;
        return Err(Unavailable::Unconnected);
    }
    let done = act(own);
    if !own.is_sound() {
        *held = None;
    }
    Ok(done)
}

/// The most times that a request is sent again after its connection was closed. Other threads also close it, when their deadlines
/// pass.
pub(crate) const RETRIES_MAX: u32 = 2;

/// Returns true if the server has certainly not seen the invocation. A new connection that the server closes in an orderly way is
/// not replaced: the server refuses connections.
pub(super) fn may_retry(error: &CallError, is_new: bool) -> bool {
    match error {
        CallError::NoReply(ReplyError::Closed) => !is_new,
        error => error.is_stale(),
    }
}

/// The connections to one endpoint that client threads share.
#[derive(Debug, Default)]
pub(crate) struct SharedConnections {
    /// The first one, which is permanent and found without a lock. Nearly always it is the only one.
    first: SetOnce<Arc<ConnectionSlot>>,
    further: Mutex<Vec<Arc<ConnectionSlot>>>,
}

/// The place of the connection that client threads share for the calls of one channel.
#[derive(Debug)]
struct ConnectionSlot {
    channel: Channel,
    connection: Place,
}

#[derive(Debug)]
enum Place {
    /// One thread at a time uses it, for a whole call.
    Single(Mutex<Option<Box<SingleConnection>>>),
    /// Many threads wait on it at once. The lock is held to look it up, and while it is opened.
    Shared(Mutex<Option<Arc<SharedConnection>>>),
}

impl SharedConnections {
    /// Returns the slot of a channel, if it had a call.
    #[inline]
    fn known(&self, channel: Channel) -> Option<Arc<ConnectionSlot>> {
        let first = self.first.get()?;
        if first.channel == channel {
            return Some(Arc::clone(first));
        }
        let further = self.further.lock();
        let known = further.iter().find(|slot| slot.channel == channel);
        known.map(Arc::clone)
    }

    #[inline]
    fn slot(&self, multiplexed: &Multiplexed, invocation: &Invocation<'_>) -> Arc<ConnectionSlot> {
        let first = self
            .first
            .get_or_make(|| ConnectionSlot::new(multiplexed, invocation));
        if first.channel == invocation.channel {
            return Arc::clone(first);
        }
        self.further_slot(multiplexed, invocation)
    }

    fn further_slot(
        &self,
        multiplexed: &Multiplexed,
        invocation: &Invocation<'_>,
    ) -> Arc<ConnectionSlot> {
        let mut further = self.further.lock();
        let known = further
            .iter()
            .find(|slot| slot.channel == invocation.channel);
        if let Some(slot) = known {
            return Arc::clone(slot);
        }
        if further.len() >= invocation.core.limits.shared_connections_max {
            further.retain(|slot| Arc::strong_count(slot) > 1 || slot.is_open());
        }
        let slot = ConnectionSlot::new(multiplexed, invocation);
        further.push(Arc::clone(&slot));
        slot
    }
}

/// Drops the held connection if no thread uses it and `may_drop` returns true. Returns true if none is held now.
fn clear<T>(held: &Mutex<Option<T>>, may_drop: impl FnOnce(&T) -> bool) -> bool {
    held.try_lock().is_some_and(|mut held| {
        let is_clear = held.as_ref().is_none_or(may_drop);
        if is_clear {
            *held = None;
        }
        is_clear
    })
}

impl ConnectionSlot {
    /// Makes the slot of an invocation's channel, without a connection.
    fn new(multiplexed: &Multiplexed, invocation: &Invocation<'_>) -> Arc<Self> {
        Arc::new(Self {
            channel: invocation.channel,
            connection: match multiplexed.wait {
                SharedWait::Read => Place::Single(Mutex::default()),
                _ => Place::Shared(Mutex::default()),
            },
        })
    }

    /// Closes the connection unless a call is in progress on it, or, with `keeps_unsent`, a part of a oneway is unsent. Returns
    /// true if no connection is open now.
    fn close(&self, keeps_unsent: bool) -> bool {
        match &self.connection {
            Place::Single(held) => clear(held, |own| !keeps_unsent || own.is_flushed()),
            Place::Shared(held) => clear(held, |shared| shared.close_if_unused()),
        }
    }

    fn is_open(&self) -> bool {
        match &self.connection {
            Place::Single(connection) => connection.try_lock().is_none_or(|held| held.is_some()),
            Place::Shared(current) => current
                .try_lock()
                .is_none_or(|current| current.as_ref().is_some_and(|shared| !shared.is_closed())),
        }
    }
}

/// The state of the strategy: how threads wait, and the connections that are open.
#[derive(Debug)]
pub(crate) struct Multiplexed {
    wait: SharedWait,
    open: Mutex<Vec<OpenConnection>>,
}

#[derive(Debug)]
struct OpenConnection {
    slot: Weak<ConnectionSlot>,
    /// Keeps the connection open after the last reference to it is dropped; `None` for a private connection.
    _endpoint: Option<Arc<SharedEndpoint>>,
}

impl Multiplexed {
    /// Makes the state of a client without connections. `reader_thread` is the scheduling of the reactor and of connections'
    /// threads.
    pub(crate) fn new(wait: WaitStrategy, reader_thread: ClientThread) -> Self {
        Self {
            wait: match wait {
                WaitStrategy::Read => SharedWait::Read,
                WaitStrategy::Reactor => SharedWait::Reactor(Reactor::new(reader_thread)),
                WaitStrategy::LeaderFollowers => SharedWait::LeaderFollowers(Arc::default()),
                WaitStrategy::ConnectionThread => {
                    SharedWait::ConnectionThread(ConnectionThreads::new(reader_thread))
                }
            },
            open: Mutex::default(),
        }
    }

    /// Returns the connections that a thread of the application may read.
    pub(super) fn reply_reader(&self) -> Option<&Arc<ReplyReader>> {
        self.wait.reply_reader()
    }

    /// Calls on the connection of a slot once no other thread uses it. The wait for that counts towards the deadline.
    fn call_single<'a>(
        &self,
        invocation: &Invocation<'_>,
        slot: &Arc<ConnectionSlot>,
        connection: &Mutex<Option<Box<SingleConnection>>>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, SystemException> {
        if let Some(held) = connection.try_lock() {
            return self.call_held(invocation, slot, held, arguments, results);
        }
        // Others may use the connection for a while, or be opening it.
        let invocation = &invocation.delayed();
        // The thread that holds the connection may wait for this upcall.
        if invocation.client.host.is_in_servant() {
            return exclusive::call(invocation, arguments, results);
        }
        match lock_until(connection, invocation.deadline.at_ns()) {
            Some(held) => self.call_held(invocation, slot, held, arguments, results),
            None => Err(CallError::NoReply(ReplyError::NotSent).into_exception(invocation)),
        }
    }

    /// Calls on the held connection, or on a new one if there is none or the server has closed it.
    fn call_held<'a>(
        &self,
        invocation: &Invocation<'_>,
        slot: &Arc<ConnectionSlot>,
        mut held: MutexGuard<'_, Option<Box<SingleConnection>>>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, SystemException> {
        if let Some(mut own) = held.take() {
            let ended = own.call(invocation, arguments, results);
            if own.is_sound() {
                *held = Some(own);
            }
            match ended {
                Err(error) if error.is_stale() => {}
                ended => return ended.map_err(|error| error.into_exception(invocation)),
            }
        }
        let invocation = &invocation.delayed();
        self.note_opening(invocation, slot)?;
        let mut own = Box::new(SingleConnection::open(invocation)?);
        let ended = own.call(invocation, arguments, results);
        if own.is_sound() {
            *held = Some(own);
        }
        ended.map_err(|error| error.into_exception(invocation))
    }

    /// Returns the connection of a slot, and whether it is new. Opens one if there is none.
    fn current_of(
        &self,
        slot: &Arc<ConnectionSlot>,
        current: &Mutex<Option<Arc<SharedConnection>>>,
        invocation: &Invocation<'_>,
    ) -> Result<(Arc<SharedConnection>, bool), SystemException> {
        let mut current = locked(current, invocation)?;
        let open = current.as_ref().filter(|shared| !shared.is_closed());
        if let Some(shared) = open.filter(|shared| !shared.ends_idle(invocation.now_ns())) {
            return Ok((Arc::clone(shared), false));
        }
        *current = None;
        self.note_opening(invocation, slot)?;
        let stream = opening::open(invocation)?;
        let opened = SharedConnection::new(invocation, stream, &self.wait)?;
        opening::bind_band(invocation, |bind, results| {
            opened.call(bind, Others::Any, &|_| Ok(()), results)
        })?;
        *current = Some(Arc::clone(&opened));
        Ok((opened, true))
    }

    /// Registers a connection before it is opened. If there are too many, closes one that no thread uses.
    ///
    /// # Errors
    /// NO_RESOURCES if all are in use.
    fn note_opening(
        &self,
        invocation: &Invocation<'_>,
        slot: &Arc<ConnectionSlot>,
    ) -> Result<(), SystemException> {
        let endpoint = &invocation.route.endpoint;
        let mut open = self.open.lock();
        open.retain(|other| {
            let other = other.slot.upgrade();
            other.is_some_and(|other| !Arc::ptr_eq(&other, slot) && other.is_open())
        });
        if open.len() >= invocation.core.limits.shared_connections_max {
            let close_one = |keeps_unsent| {
                open.iter().position(|other| {
                    let slot = other.slot.upgrade();
                    slot.is_none_or(|slot| slot.close(keeps_unsent))
                })
            };
            match close_one(true).or_else(|| close_one(false)) {
                Some(place) => drop(open.remove(place)),
                None => return Err(local::CONNECTIONS_FULL),
            }
        }
        open.push(OpenConnection {
            slot: Arc::downgrade(slot),
            _endpoint: (!endpoint.is_private).then(|| Arc::clone(endpoint)),
        });
        Ok(())
    }
}

/// Locks a slot's connection. If another thread is opening it, waits as long as opening may take.
pub(super) fn locked<'l, T>(
    current: &'l Mutex<T>,
    invocation: &Invocation<'_>,
) -> Result<MutexGuard<'l, T>, SystemException> {
    if let Some(current) = current.try_lock() {
        return Ok(current);
    }
    let deadline = opening::deadline(invocation);
    let held = deadline
        .at_ns()
        .and_then(|deadline_ns| current.lock_until(deadline_ns));
    held.ok_or_else(|| {
        SystemException::omg(ExceptionKind::Timeout, 2).with_cause(Cause {
            phase: Phase::Connect,
            endpoint: Some(Arc::clone(&invocation.route.endpoint.endpoint)),
            elapsed: deadline.elapsed(monotonic_ns()),
            errno: None,
        })
    })
}

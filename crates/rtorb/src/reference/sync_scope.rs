//! How long a oneway waits before its caller goes on: until the transport has it, or not at all.

use super::{Inner, ObjectRef, is_unconnected};
use crate::connection::{Arguments, Channel, Invocation, InvocationKind, without_waiting};
use crate::exception::{SystemException, oneway};
use core::sync::atomic::Ordering;
use rtorb_wire::giop::Response;

/// How far a oneway has come when its caller goes on (Messaging::SyncScope; CORBA 3.1 part 1, 17.2).
///
/// Calls that have a reply are the same with each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncScope {
    /// Nowhere (SYNC_NONE): the caller waits for nothing, neither for room in the socket nor for a connection, nor for another
    /// thread.
    ///
    /// It goes by a connection that is open already ([`ObjectRef::validate_connection`] opens it, or a call): one system call, by
    /// which the socket takes what it has room for. What it has no room for is kept in the connection: the rest of one message at
    /// most, which goes before anything else does, by [`ObjectRef::flush`], the next oneway, or a call, which waits for that as
    /// it waits for all. A oneway is refused with TRANSIENT, COMPLETED_NO, and nothing of it is sent,
    /// * [`UNCONNECTED`](Self::UNCONNECTED): while there is no open connection;
    /// * [`BEHIND_ANOTHER`](Self::BEHIND_ANOTHER): while something is left of the one before;
    /// * [`IN_USE`](Self::IN_USE): while another thread has the connection, for a call or a oneway of its own.
    ///
    /// It needs a connection that one thread uses at a time: with the wait strategies `reactor` and `leader_followers` it is
    /// INV_POLICY. With connections by thread (`exclusive`) a thread has to open its own; with `multiplexed`, or `banded`,
    /// what one thread opens is there for all, and with [`PrivateConnection`](crate::realtime::Policy::PrivateConnection) it is this
    /// reference's alone. What is kept goes with the connection: when it breaks, when the last reference with a private one is
    /// dropped, or when the ORB has so many that one is closed for another ([`Limits`](crate::Limits)), which is one that
    /// keeps nothing as long as there is one.
    ///
    /// Nothing comes back of a oneway. That the server has ended is known from the first send after its host said so: over a
    /// UNIX socket that is the next one, over TCP usually the second, and of a host that fell silent nothing is known
    /// until its kernel gives up (COMM_FAILURE); the oneways before are lost unseen. A call that has a reply is how to find out.
    None,
    /// With the transport (SYNC_WITH_TRANSPORT): the caller waits until the socket has taken all of it, and opens the
    /// connection if there is none.
    #[default]
    WithTransport,
}

impl SyncScope {
    /// Minor code of TRANSIENT: a oneway that waits for nothing has no open connection.
    pub const UNCONNECTED: u32 = oneway::UNCONNECTED;
    /// Minor code of TRANSIENT: the rest of an earlier oneway is not sent yet.
    pub const BEHIND_ANOTHER: u32 = oneway::BEHIND_ANOTHER;
    /// Minor code of TRANSIENT: another thread has the connection.
    pub const IN_USE: u32 = oneway::IN_USE;
}

impl ObjectRef {
    /// The same object, by the same connections, with oneways that wait as `sync_scope` says.
    ///
    /// Calls that have a reply are as before, so that one reference does for both. Each finds out by itself when the object
    /// moves (LOCATION_FORWARD), by such calls only: open the connection through the reference that sends the oneways.
    #[must_use]
    pub fn with_sync_scope(&self, sync_scope: SyncScope) -> Self {
        Self::of(Inner {
            sync_scope,
            ..self.inner.copy()
        })
    }

    /// How long oneways through this reference wait.
    pub fn sync_scope(&self) -> SyncScope {
        self.inner.sync_scope
    }

    /// Sends what is left of a oneway with [`SyncScope::None`], as far as that goes without waiting: true when nothing is left,
    /// so that the next oneway is accepted unless the connection breaks.
    ///
    /// It is about the connection that a oneway of the calling thread, with its present priority, would take. False as well
    /// while another thread has that. Where nothing is left it makes no system call.
    ///
    /// # Errors
    /// TRANSIENT [`UNCONNECTED`](SyncScope::UNCONNECTED) when no connection is open; COMM_FAILURE when it turns out to be
    /// broken: what was left is lost, and the connection closed; INV_POLICY as [`SyncScope::None`] says.
    pub fn flush(&self) -> Result<bool, SystemException> {
        self.at_once("", without_waiting::flush)
    }

    #[inline]
    pub(super) fn send_at_once<'a>(
        &self,
        operation: &str,
        arguments: Arguments<'_, 'a>,
    ) -> Result<bool, SystemException> {
        self.at_once(operation, |invocation| {
            without_waiting::send(invocation, arguments)
        })
    }

    /// Does something by the first route that has an open connection, at the place where the object was found last.
    #[inline]
    fn at_once<T>(
        &self,
        operation: &str,
        mut act: impl FnMut(&Invocation<'_>) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        self.inner.client.core.check_open()?;
        let target = self.inner.forward();
        let inner: &Inner = target.as_ref().map_or(&self.inner, |target| &target.inner);
        let Some(route) = inner.routes.first() else {
            return Err(inner.unusable());
        };
        let mut invocation = Invocation {
            core: &inner.client.core,
            client: &inner.client,
            kind: InvocationKind::Operation,
            operation,
            response: Response::None,
            timeout: None,
            route,
            channel: Channel::ANY,
            priority: None,
        };
        let priority = inner.call_priority(None)?;
        let preferred = inner.preferred.load(Ordering::Relaxed);
        let mut unconnected = None;
        for step in 0..inner.routes.len() {
            let index = inner.index(preferred, step);
            if !inner.take_route(&mut invocation, priority.as_ref(), index) {
                continue;
            }
            match act(&invocation) {
                Err(exception) if is_unconnected(&exception) => {
                    unconnected.get_or_insert(exception);
                }
                done => return done,
            }
        }
        Err(unconnected.unwrap_or_else(|| inner.no_route()))
    }
}

//! The synchronization scope of oneways: whether the caller waits until the transport has taken the request.

use super::intercepted_call::is_seen;
use super::route_choice::is_unconnected;
use super::{Inner, ObjectRef};
use crate::connection::{AddedContexts, Arguments, Invocation, InvocationKind, without_waiting};
use crate::deadline::{DeadlineScope, NONE_NS};
use crate::distributable::{self, ThreadCall};
use crate::exception::{SystemException, local, oneway};
use crate::thread_state;
use core::sync::atomic::Ordering;

/// When the call of a oneway returns (Messaging::SyncScope; CORBA 3.1 part 1, 17.2).
///
/// It has no effect on calls with a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncScope {
    /// At once (SYNC_NONE): the caller waits neither for room in the socket, nor for a connection, nor for another thread.
    ///
    /// The oneway uses a connection that is already open ([`ObjectRef::validate_connection`] or a call opens it). One system call
    /// sends as much as the socket takes. The connection keeps the unsent part, at most one message. [`ObjectRef::flush`], the
    /// next oneway or the next call sends it before anything else; a call waits until it is sent. A oneway fails with TRANSIENT,
    /// COMPLETED_NO, and nothing of it is sent:
    /// * [`UNCONNECTED`](Self::UNCONNECTED): if there is no open connection;
    /// * [`BEHIND_ANOTHER`](Self::BEHIND_ANOTHER): if part of an earlier oneway is still unsent;
    /// * [`IN_USE`](Self::IN_USE): if another thread uses the connection for a call or a oneway.
    ///
    /// A oneway whose deadline has passed before fails with TIMEOUT, COMPLETED_NO.
    ///
    /// It needs a connection that one thread at a time uses: with every wait strategy but `read`, and with bidirectional
    /// connections, it fails with INV_POLICY. With `exclusive`, each thread has to open its own connection; with `multiplexed` and `banded`, all
    /// threads use the connection that one of them opened. With
    /// [`PrivateConnection`](crate::realtime::Policy::PrivateConnection), only this reference uses it. The unsent part is lost with
    /// its connection: when the connection breaks, when the last reference with a private connection is dropped, or when the
    /// ORB closes a connection to open another ([`Limits`](crate::Limits)). The ORB closes connections without unsent parts first.
    ///
    /// A oneway on a connection that was idle for more than a second finds that its server has ended it: UNCONNECTED.
    ///
    /// A oneway has no reply. The first send after the server's host reports the end of the server fails: over a UNIX socket the
    /// next send, over TCP usually the second. If the host is silent, sends fail only when this host's kernel gives up
    /// (COMM_FAILURE). Earlier oneways are lost without notice. A call with a reply checks the server.
    None,
    /// When the socket has taken all of it (SYNC_WITH_TRANSPORT). The caller opens the connection if there is none. With the wait
    /// strategy `connection_thread` it waits until the connection's thread has sent it.
    #[default]
    WithTransport,
}

impl SyncScope {
    /// Minor code of TRANSIENT: a non-blocking oneway has no open connection.
    pub const UNCONNECTED: u32 = oneway::UNCONNECTED;
    /// Minor code of TRANSIENT: part of an earlier oneway is still unsent.
    pub const BEHIND_ANOTHER: u32 = oneway::BEHIND_ANOTHER;
    /// Minor code of TRANSIENT: another thread uses the connection.
    pub const IN_USE: u32 = oneway::IN_USE;
}

impl ObjectRef {
    /// Returns a reference to the same object, over the same connections, with another scope for oneways.
    ///
    /// Calls with a reply are unaffected, so one reference serves for both. Each reference learns of a move of the object
    /// (LOCATION_FORWARD) by its own calls with a reply: open the connection through the reference that sends the oneways.
    #[must_use]
    pub fn with_sync_scope(&self, sync_scope: SyncScope) -> Self {
        Self::of(Inner {
            sync_scope: Some(sync_scope),
            ..self.inner.copy()
        })
    }

    /// Returns the scope of oneways through this reference.
    pub fn sync_scope(&self) -> SyncScope {
        self.inner.sync_scope.unwrap_or_default()
    }

    /// Sends the unsent part of a oneway with [`SyncScope::None`], as far as the socket takes it without waiting. Returns true if
    /// nothing is left; the next oneway is then accepted unless the connection breaks.
    ///
    /// It concerns the connection that a oneway of the calling thread, with its current priority and policies, would use. It returns false while
    /// another thread uses that connection. If nothing is left it makes no system call, unless the connection was idle for more than a
    /// second: then it looks whether the server has ended it.
    ///
    /// # Errors
    /// TRANSIENT [`UNCONNECTED`](SyncScope::UNCONNECTED) if no connection is open; COMM_FAILURE if the connection is broken: the
    /// unsent part is lost and the connection closed; INV_POLICY as for [`SyncScope::None`].
    pub fn flush(&self) -> Result<bool, SystemException> {
        if thread_state::has_special()
            && let Some(object) = self.with_thread_policies()
        {
            return object.flush();
        }
        let kind = InvocationKind::Operation;
        self.at_once("", kind, NONE_NS, &mut |invocation| {
            without_waiting::flush(invocation)
        })
    }

    #[inline]
    pub(super) fn send_at_once<'a>(
        &self,
        operation: &str,
        arguments: Arguments<'_, 'a>,
    ) -> Result<bool, SystemException> {
        if thread_state::has_special()
            && let Some(sent) = self.send_for_thread(operation, arguments)
        {
            return sent;
        }
        let expiry_ns = self.expiry_ns()?;
        let kind = InvocationKind::Operation;
        self.at_once(operation, kind, expiry_ns, &mut |invocation| {
            without_waiting::send(invocation, arguments)
        })
    }

    /// Sends a oneway with the policies of the calling thread, or in its distributable thread; `None` if it has neither.
    #[cold]
    fn send_for_thread<'a>(
        &self,
        operation: &str,
        arguments: Arguments<'_, 'a>,
    ) -> Option<Result<bool, SystemException>> {
        if let Some(object) = self.with_thread_policies() {
            return Some(object.send_at_once(operation, arguments));
        }
        distributable::is_within().then(|| self.send_in_thread(operation, arguments))
    }

    /// Sends a oneway of the distributable thread that the calling thread runs.
    #[cold]
    fn send_in_thread<'a>(
        &self,
        operation: &str,
        arguments: Arguments<'_, 'a>,
    ) -> Result<bool, SystemException> {
        let order = self.inner.client.core.byte_order;
        let call = ThreadCall::begin(true, order)?.ok_or(local::CONTRADICTION)?;
        let _inherited = DeadlineScope::enter(call.deadline_ns());
        let mut is_sent = false;
        let added = AddedContexts {
            thread: Some(&call),
            intercepted: None,
        };
        let kind = InvocationKind::WithContexts(&added);
        let ended = self.expiry_ns().and_then(|expiry_ns| {
            self.at_once(operation, kind, expiry_ns, &mut |invocation| {
                is_sent = without_waiting::send(invocation, arguments)?;
                Ok(())
            })
        });
        call.end(ended).map(|()| is_sent)
    }

    /// Calls `act` with the first route that has an open connection, at the object's last known location.
    #[inline]
    pub(super) fn at_once<T>(
        &self,
        operation: &str,
        kind: InvocationKind<'_>,
        expiry_ns: u64,
        act: &mut impl FnMut(&Invocation<'_>) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let core = &self.inner.client.core;
        if core.is_special() {
            self.inner.client.check_open()?;
            // Without an operation, nothing is sent but the rest of an earlier oneway.
            if core.is_intercepted() && is_seen(kind) && !operation.is_empty() {
                return self.at_once_between(operation, kind, expiry_ns, act);
            }
        }
        let target = self.inner.forward();
        let inner: &Inner = target.as_ref().map_or(&self.inner, |target| &target.inner);
        let mut invocation = Invocation {
            kind,
            // It has no beginning from which the remaining time would count.
            is_delayed: true,
            expiry_ns,
            ..inner.oneway(operation)?
        };
        let priority = inner.call_priority(None)?;
        let preferred = inner.preferred.load(Ordering::Relaxed);
        let mut unconnected = None;
        for step in 0..inner.routes.len() {
            if !inner.take_route(&mut invocation, priority.as_ref(), preferred, step) {
                continue;
            }
            match act(&invocation) {
                Err(exception) if is_unconnected(&exception) => {
                    unconnected.get_or_insert(exception);
                }
                done => return done,
            }
        }
        Err(unconnected.unwrap_or_else(|| inner.no_route(priority)))
    }
}

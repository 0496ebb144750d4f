//! Calls of servants of the same ORB by their traits: they need no request.

use super::collocated::Nesting;
use super::object_key::ObjectKey;
use super::object_table::ActiveObject;
use super::server_core::ServerCore;
use super::thread_priority;
use super::upcall::{FAILED, InServant};
use crate::exception::SystemException;
use crate::realtime::UpcallPriority;
use core::any::Any;
use rtorb_core::codegen::ServantTraits;
use rtorb_os::slab::{SlabGuard, SlabHandle};
use std::sync::Arc;

/// An object whose servant may be called without a request, for a reference of the same ORB.
#[derive(Debug)]
pub(crate) struct LocalObject {
    server: Arc<ServerCore>,
    entry: SlabHandle<ActiveObject>,
}

/// A call of a servant that is in progress on the calling thread, until it is [ended](Self::end).
pub(crate) struct LocalCall<'o> {
    servant: SlabGuard<'o, ActiveObject, ServantTraits>,
    inside: InServant,
    priority: UpcallPriority,
    _nesting: Nesting,
    server: &'o ServerCore,
}

impl LocalObject {
    /// Finds the object with that key; `None` if the key is readable, or another ORB's.
    pub(crate) fn find(server: Arc<ServerCore>, object_key: &[u8]) -> Option<Self> {
        match ObjectKey::parse(object_key) {
            ObjectKey::Transient { epoch, place } if epoch == server.epoch => Some(Self {
                entry: server.objects.handle(place)?,
                server,
            }),
            _ => None,
        }
    }

    /// Begins a call on the calling thread. `None` if a request is necessary: the object is not active, its servant serves requests
    /// only, or the request would be refused.
    // Always: it is in the path of a call without a request.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Option<LocalCall<'_>> {
        let object = self.entry.get()?;
        // A request that the manager does not admit, or that is too deep, gets the exception.
        if !object.manager.is_active() {
            return None;
        }
        let server = &*self.server;
        Some(LocalCall {
            servant: SlabGuard::part(object, ActiveObject::traits)?,
            _nesting: Nesting::enter(server.limits.collocated_depth_max)?,
            priority: UpcallPriority::unchanged(),
            inside: InServant::enter(server.upcall),
            server,
        })
    }
}

impl LocalCall<'_> {
    /// Returns the servant as its trait `V`; `None` if it serves another interface.
    #[inline]
    pub(crate) fn servant<V: ?Sized + 'static>(&self) -> Option<&V> {
        self.servant.get()
    }

    /// Ends the call. If the object was removed meanwhile, and no other call uses it, it is dropped.
    // Always: it is in the path of a call without a request.
    #[inline(always)]
    pub(crate) fn end(self) {
        drop(self.inside);
        drop(self.servant);
        if self.priority.has_left_changes() {
            end_changes(self.server, self.priority);
        }
    }
}

/// Returns the exception of a call whose servant has panicked.
#[cold]
#[inline(never)]
pub(crate) fn servant_panicked(panic: Box<dyn Any + Send>) -> SystemException {
    drop(panic);
    FAILED
}

/// Ends what the servant has left changed on the application's thread.
#[cold]
#[inline(never)]
fn end_changes(server: &ServerCore, priority: UpcallPriority) {
    if let Some(before) = thread_priority::end_changes(&server.rt, priority) {
        // If the host refuses, the thread keeps what the servant set, as after a request.
        let _ = server.rt.apply_policy(before);
    }
}

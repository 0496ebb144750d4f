//! Object keys that the application chooses, so that a corbaloc with host, port and a short key leads to an object.

use super::Orb;
use crate::reference::{ObjectRef, routes};
use crate::server::Unbindable;
use crate::server::object_key::{self, ObjectKey};

/// Why an object cannot be bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectKeyError {
    /// The key is empty, longer than 255 bytes, or contains a zero, as keys of transient objects do.
    #[error("an object key to bind has 1 to 255 octets, none of them zero")]
    Unfit,
    /// What stands before the last `/` of the key is the path of an adapter: the key is, or may become, that of its object.
    #[error("the object key is one of an object adapter: choose another, or rename the adapter")]
    OfAdapter,
    /// No adapter of this ORB made the reference.
    #[error(
        "the reference is not to an object of this ORB: bind one that an adapter of this ORB made"
    )]
    NotOwn,
    /// The key is bound already.
    #[error("the object key is bound already: unbind it first")]
    Taken,
    /// `Limits::bound_keys_max` are bound.
    #[error("too many object keys are bound: unbind some, or raise `bound_keys_max`")]
    TooMany,
}

/// Bound on the bytes of a chosen key: it fits into one URL segment and is compared quickly.
const KEY_OCTETS_MAX: usize = 255;

impl Orb {
    /// Binds the object key `key` to an object: `corbaloc:iiop:HOST:PORT/KEY` leads to it, for every
    /// ORB, without a forward (what TAO does by its IORTable and omniORB by its INSPOA).
    ///
    /// The server resolves the reference's own key for each request, so the object need not be active yet, and a persistent object may
    /// be activated again. Requests are forwarded if the adapter's thread pool has endpoints of its own.
    ///
    /// # Errors
    /// See [`ObjectKeyError`].
    pub fn bind_object_key(
        &self,
        key: impl AsRef<[u8]>,
        object: &ObjectRef,
    ) -> Result<(), ObjectKeyError> {
        let key = key.as_ref();
        let is_fit = (1..=KEY_OCTETS_MAX).contains(&key.len()) && !key.contains(&0);
        if !is_fit {
            return Err(ObjectKeyError::Unfit);
        }
        if self.is_of_adapter(key) {
            return Err(ObjectKeyError::OfAdapter);
        }
        let own = routes::object_key(object.ior()).filter(|key| self.is_own(key));
        let own = own.ok_or(ObjectKeyError::NotOwn)?;
        let bound_max = self.core.adapters.server.limits.bound_keys_max;
        let bound = self.core.adapters.server.objects.bind(key, own, bound_max);
        bound.map_err(|unbindable| match unbindable {
            Unbindable::Taken => ObjectKeyError::Taken,
            Unbindable::TooMany => ObjectKeyError::TooMany,
        })
    }

    /// Removes the binding of a [bound](Self::bind_object_key) key; false if the key was not bound.
    ///
    /// Requests in progress end normally.
    pub fn unbind_object_key(&self, key: impl AsRef<[u8]>) -> bool {
        self.core.adapters.server.objects.unbind(key.as_ref())
    }

    /// True if an object with that key is one of an adapter of this ORB.
    fn is_own(&self, key: &[u8]) -> bool {
        match ObjectKey::parse(key) {
            ObjectKey::Transient { epoch, .. } => epoch == self.core.adapters.server.epoch,
            ObjectKey::Named(name) => self.is_of_adapter(name),
        }
    }

    /// True if a readable key is that of an object, active or not, of an adapter of this ORB.
    fn is_of_adapter(&self, key: &[u8]) -> bool {
        object_key::split(key)
            .and_then(|(adapter, _)| core::str::from_utf8(adapter).ok())
            .is_some_and(|adapter| self.core.adapters.root.has(adapter.trim_end_matches('/')))
    }
}

//! Object keys that the application chooses, so that a corbaloc URL with host, port and a short key leads to an object.

use super::Orb;
use crate::reference::{ObjectRef, routes};
use crate::server::Unbindable;
use crate::server::object_key::{self, ObjectKey};

/// The error for an object that cannot be bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectKeyError {
    /// The key is empty, longer than 255 bytes, or contains a zero, as keys of transient objects do.
    #[error("an object key to bind has 1 to 255 bytes, none of them zero")]
    Unfit,
    /// The part of the key before its last `/` is the path of an adapter: the key is, or may become, that of one of its objects.
    #[error("the object key is one of an object adapter: choose another, or rename the adapter")]
    OfAdapter,
    /// The reference was not made by an adapter of this ORB.
    #[error(
        "the reference is not to an object of this ORB: bind one that an adapter of this ORB made"
    )]
    NotOwn,
    /// The key is already bound.
    #[error("the object key is already bound: unbind it first")]
    Taken,
    /// `Limits::bound_keys_max` keys are bound.
    #[error("too many object keys are bound: unbind some, or raise `bound_keys_max`")]
    TooMany,
}

/// The most bytes of a chosen key, which fits into a URL segment and is compared quickly.
const KEY_BYTES_MAX: usize = 255;

impl Orb {
    /// Binds the object key `key` to an object: `corbaloc:iiop:HOST:PORT/KEY` leads to it for clients of any ORB, without a forward, as
    /// with TAO's IORTable and omniORB's INSPOA.
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
        let is_fit = (1..=KEY_BYTES_MAX).contains(&key.len()) && !key.contains(&0);
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

    /// Removes the binding of a [bound](Self::bind_object_key) key. Returns false if the key was not bound.
    ///
    /// Requests in progress end normally.
    pub fn unbind_object_key(&self, key: impl AsRef<[u8]>) -> bool {
        self.core.adapters.server.objects.unbind(key.as_ref())
    }

    /// Returns true if the key belongs to an object of an adapter of this ORB.
    fn is_own(&self, key: &[u8]) -> bool {
        match ObjectKey::parse(key) {
            ObjectKey::Transient { epoch, .. } => epoch == self.core.adapters.server.epoch,
            ObjectKey::Named(name) => self.is_of_adapter(name),
        }
    }

    /// Returns true if a decoded key belongs to an object, active or not, of an adapter of this ORB.
    fn is_of_adapter(&self, key: &[u8]) -> bool {
        object_key::split(key)
            .and_then(|(adapter, _)| core::str::from_utf8(adapter).ok())
            .is_some_and(|adapter| self.core.adapters.root.has(adapter.trim_end_matches('/')))
    }
}

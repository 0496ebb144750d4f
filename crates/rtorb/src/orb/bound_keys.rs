//! Object keys that the application chooses, so that an object is found by host, port and a word.

use super::Orb;
use crate::reference::ObjectRef;
use crate::server::Unbindable;
use crate::server::object_key::{self, ObjectKey};
use core::fmt;

/// Why an object cannot be bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectKeyError {
    /// The key is empty, longer than 255 octets, or has a `/` or a zero: such keys are those of adapters.
    Unfit,
    /// The reference is not to an object of an adapter of this ORB.
    NotOwn,
    /// The key is bound already.
    Taken,
    /// `Limits::bound_keys_max` are bound.
    TooMany,
}

impl fmt::Display for ObjectKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfit => "an object key to bind has 1 to 255 octets, none of them `/` or zero",
            Self::NotOwn => {
                "the reference is not to an object of this ORB: bind one that an adapter of this ORB made"
            }
            Self::Taken => "the object key is bound already: unbind it first",
            Self::TooMany => {
                "too many object keys are bound: unbind some, or raise `bound_keys_max`"
            }
        })
    }
}

impl std::error::Error for ObjectKeyError {}

/// Octets of a key that the application chooses: what fits into one label of a URL, and is quickly compared.
const KEY_OCTETS_MAX: usize = 255;

impl Orb {
    /// Lets requests with the object key `key` reach that object too: `corbaloc:iiop:HOST:PORT/KEY` leads to it, for every
    /// ORB, without a forward (what TAO does by its IORTable and omniORB by its INSPOA).
    ///
    /// The object is whatever has the reference's own key at the time of the request: it need not be active yet, and a
    /// persistent one may be activated again. Its adapter should be served at the ORB's own endpoints: one of a pool with
    /// endpoints of its own is forwarded to.
    ///
    /// # Errors
    /// As [`ObjectKeyError`] says.
    pub fn bind_object_key(
        &self,
        key: impl AsRef<[u8]>,
        object: &ObjectRef,
    ) -> Result<(), ObjectKeyError> {
        let key = key.as_ref();
        let is_fit = (1..=KEY_OCTETS_MAX).contains(&key.len())
            && !key.iter().any(|octet| matches!(octet, b'/' | 0));
        if !is_fit {
            return Err(ObjectKeyError::Unfit);
        }
        let own =
            crate::reference::routes::object_key(object.ior()).ok_or(ObjectKeyError::NotOwn)?;
        if !self.is_own(&own) {
            return Err(ObjectKeyError::NotOwn);
        }
        let bound_max = self.core.adapters.server.limits.bound_keys_max;
        let bound = self.core.adapters.server.objects.bind(key, own, bound_max);
        bound.map_err(|unbindable| match unbindable {
            Unbindable::Taken => ObjectKeyError::Taken,
            Unbindable::TooMany => ObjectKeyError::TooMany,
        })
    }

    /// Takes a key away from the object that was [bound](Self::bind_object_key) to it; false if there was none.
    ///
    /// Requests in progress end normally.
    pub fn unbind_object_key(&self, key: impl AsRef<[u8]>) -> bool {
        self.core.adapters.server.objects.unbind(key.as_ref())
    }

    /// True if an object with that key is one of an adapter of this ORB.
    fn is_own(&self, key: &[u8]) -> bool {
        match ObjectKey::parse(key) {
            ObjectKey::Transient { epoch, .. } => epoch == self.core.adapters.server.epoch,
            ObjectKey::Named(name) => object_key::split(name)
                .and_then(|(adapter, _)| core::str::from_utf8(adapter).ok())
                .is_some_and(|adapter| self.core.adapters.root.has(adapter.trim_end_matches('/'))),
        }
    }
}

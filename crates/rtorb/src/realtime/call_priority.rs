//! The priority of calls to an object, by the priority model of its adapter.

use super::priority::{NativePriority, Priority};
use core::sync::atomic::{AtomicI16, AtomicU32, Ordering};

/// The source of a call's priority. It is computed when the object is activated, so that calls do no lookup.
#[derive(Debug)]
pub(crate) enum CallPriority {
    /// The adapter has no priority model: the serving thread keeps its priority.
    AsItIs,
    /// SERVER_DECLARED: the object's priority.
    Declared(DeclaredPriority),
    /// CLIENT_PROPAGATED: the request's priority, or this one if the request has none.
    Propagated { otherwise: ServerPriority },
}

/// The priority of an object, CORBA and native. It may change while requests read it, and each of them gets both of one time.
#[derive(Debug)]
pub(crate) struct DeclaredPriority(AtomicU32);

/// The priority of an adapter's objects that have none of their own, or of requests without a priority.
#[derive(Debug)]
pub(crate) struct ServerPriority(AtomicI16);

impl DeclaredPriority {
    /// The object's own priority, or that of its adapter.
    pub(crate) fn new(priority: Priority, native: NativePriority, is_own: bool) -> Self {
        Self(AtomicU32::new(packed(priority, native, is_own)))
    }

    #[inline]
    pub(crate) fn get(&self) -> (Priority, NativePriority) {
        let packed = self.0.load(Ordering::Relaxed);
        (Priority(packed as i16), (packed >> NATIVE_SHIFT) as u8)
    }

    /// Returns the CORBA priority.
    #[inline]
    pub(crate) fn priority(&self) -> Priority {
        self.get().0
    }

    /// Returns true if it is the object's own, and not that of its adapter.
    pub(crate) fn is_own(&self) -> bool {
        self.0.load(Ordering::Relaxed) & OWN != 0
    }

    /// Takes the value of another one.
    pub(crate) fn change_to(&self, new: &Self) {
        self.0
            .store(new.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl ServerPriority {
    pub(crate) fn new(priority: Priority) -> Self {
        Self(AtomicI16::new(priority.get()))
    }

    #[inline]
    pub(crate) fn get(&self) -> Priority {
        Priority(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, priority: Priority) {
        self.0.store(priority.get(), Ordering::Relaxed);
    }
}

/// The native priority in the highest byte, the CORBA priority in the lower half.
fn packed(priority: Priority, native: NativePriority, is_own: bool) -> u32 {
    let own = if is_own { OWN } else { 0 };
    u32::from(native) << NATIVE_SHIFT | own | u32::from(priority.get().unsigned_abs())
}

const NATIVE_SHIFT: u32 = 24;
const OWN: u32 = 1 << 16;

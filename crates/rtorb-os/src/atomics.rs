//! The atomics of this crate's tables and queues: the real ones, or loom's.
//!
//! Compiled with `--cfg loom`, the same code runs under loom, which tries the interleavings of threads and the values that
//! each may read by the memory model (`tests/loom/`). Locks that only the kernel can model are not replaced, except the
//! mutex of the slab and the futex of the ring and of the waiting word, which have models here.

pub(crate) use model::{
    AtomicPtr, AtomicU32, AtomicU64, Mutex, Ordering, UnsafeCell, fence, futex,
};

#[cfg(not(loom))]
mod model {
    pub(crate) use crate::futex;
    pub(crate) use crate::sync::Mutex;
    pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

    /// `core::cell::UnsafeCell` with loom's methods.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
            look(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            change(self.0.get())
        }
    }
}

#[cfg(loom)]
mod model {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

    /// Loom's mutex. It needs no poisoning, because a panic ends the model.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a panic ends the model")
        }
    }

    /// A futex without time: a lost wake-up is a deadlock, which loom reports.
    pub(crate) mod futex {
        use super::{AtomicU32, Ordering};
        use loom::sync::{Condvar, Mutex};

        loom::lazy_static! {
            static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
        }

        pub(crate) use self::wait_in_process as wait;
        pub(crate) use self::wake_in_process as wake;

        pub(crate) fn wait_in_process(word: &AtomicU32, expected: u32, _: Option<u64>) -> bool {
            let (mutex, woken) = &*QUEUE;
            let queue = mutex.lock().expect("a panic ends the model");
            if word.load(Ordering::SeqCst) == expected {
                drop(woken.wait(queue).expect("a panic ends the model"));
            }
            true
        }

        pub(crate) fn wake_in_process(_: &AtomicU32, count: u32) {
            let (mutex, woken) = &*QUEUE;
            let _queue = mutex.lock().expect("a panic ends the model");
            match count {
                1 => woken.notify_one(),
                _ => woken.notify_all(),
            }
        }
    }
}

//! What the one running thread has, and passes on: real threads wait for it in the real kernel.

use super::real;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Baton(AtomicU32);

impl Baton {
    pub(crate) fn pass(&self) {
        self.0.store(1, Ordering::Release);
        real::wake(&self.0);
    }

    pub(crate) fn take(&self) {
        while self
            .0
            .compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            real::sleep_while(&self.0, 0);
        }
    }
}

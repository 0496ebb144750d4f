//! The programs of this package work, and the pages show them as they are.

mod closed_outputs;
mod events;
mod lanes;
mod life;
mod neighbours;
mod overload;
mod readme;
mod reservation;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps programs that measure real-time threads apart: each takes the CPU from the others.
fn alone() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}

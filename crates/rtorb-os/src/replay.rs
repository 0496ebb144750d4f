//! A place in the program that an observer from outside can count: in an emulated machine, whose run can be repeated, the
//! n-th sample of one run is the n-th of the next.

use core::sync::atomic::{AtomicU64, Ordering};

/// Marks that one sample was taken. Whoever traces instructions counts how often its address is executed; in the program
/// itself it is counted too. It costs a few instructions, and is called right after the clock was read, by the same thread.
#[inline(never)]
pub extern "C" fn sample_taken() {
    TAKEN.fetch_add(1, Ordering::Relaxed);
}

/// How many were taken in this process so far.
#[must_use]
pub fn samples_taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// The address of [`sample_taken`] in this process.
#[must_use]
pub fn sample_taken_address() -> u64 {
    sample_taken as *const () as usize as u64
}

static TAKEN: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_address() {
        let before = samples_taken();
        sample_taken();
        assert_eq!(samples_taken(), before + 1);
        assert_ne!(sample_taken_address(), 0);
        assert_eq!(sample_taken_address(), sample_taken_address());
    }
}

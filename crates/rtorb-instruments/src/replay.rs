//! A marker that an instruction trace can count. In an emulated machine, whose run can be repeated, the n-th sample of one
//! run is the n-th of the next.

use core::sync::atomic::{AtomicU64, Ordering};

/// Marks one sample. A trace of instructions counts how often this address is executed, and the program counts the calls
/// too. It costs a few instructions. Call it right after the clock was read, on the same thread.
#[inline(never)]
pub extern "C" fn sample_taken() {
    TAKEN.fetch_add(1, Ordering::Relaxed);
}

/// The number of samples that this process has marked.
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
        assert!(samples_taken() > before);
        assert_ne!(sample_taken_address(), 0);
        assert_eq!(sample_taken_address(), sample_taken_address());
    }
}

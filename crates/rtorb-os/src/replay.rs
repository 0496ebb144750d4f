//! A place in the program that an observer from outside can count: in an emulated machine, whose run can be repeated, the
//! n-th sample of one run is the n-th of the next.

use std::hint::black_box;

/// Marks that one sample was taken. It does nothing; whoever traces instructions counts how often its address is executed.
/// It costs a call and a return, and is called after the clock was read.
#[inline(never)]
pub extern "C" fn sample_taken() {
    black_box(());
}

/// The address of [`sample_taken`] in this process.
#[must_use]
pub fn sample_taken_address() -> u64 {
    sample_taken as *const () as usize as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_address() {
        sample_taken();
        assert_ne!(sample_taken_address(), 0);
        assert_eq!(sample_taken_address(), sample_taken_address());
    }
}

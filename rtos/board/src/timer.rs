//! The board's first timer, which counts down at the processor's clock: one in 40 ns, which are 40 instructions.

use core::ptr::{read_volatile, write_volatile};

const CONTROL: *mut u32 = 0x4000_0000 as *mut u32;
const VALUE: *mut u32 = 0x4000_0004 as *mut u32;
const RELOAD: *mut u32 = 0x4000_0008 as *mut u32;

/// Instructions in a count.
pub const INSTRUCTIONS: u32 = 40;

/// Starts the timer.
pub fn begin() {
    // SAFETY: it is the board's first timer, which nothing else uses.
    unsafe { write_volatile(RELOAD, u32::MAX) }
    // SAFETY: as above; the one enables it, without an interrupt.
    unsafe { write_volatile(CONTROL, 1) }
}

/// The count now.
#[inline(always)]
pub fn now() -> u32 {
    // SAFETY: as above; reading has no effect.
    unsafe { read_volatile(VALUE) }
}

/// Counts from `begin` to now.
#[inline(always)]
pub fn since(begin: u32) -> u32 {
    begin.wrapping_sub(now())
}

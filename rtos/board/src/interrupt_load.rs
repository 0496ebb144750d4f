//! A load of interrupts: the board's second timer, whose handler computes for a while.

use core::ptr::write_volatile;

const CONTROL: *mut u32 = 0x4000_1000 as *mut u32;
const RELOAD: *mut u32 = 0x4000_1008 as *mut u32;
const CLEAR: *mut u32 = 0x4000_100c as *mut u32;

/// Its interrupt.
pub const IRQ: u8 = 9;

/// About 11 us. It shares no divisor with a tick of 25,000 counts, so that interrupts meet every place between two ticks.
const PERIOD_COUNTS: u32 = 277;
/// Instructions of the handler, in about.
const WORK: u32 = 1_000;

/// Begins. Each round has another period.
///
/// # Safety
/// The handler of [`IRQ`] calls [`interrupted`].
pub unsafe fn begin(round: u32, priority: u8) {
    // SAFETY: it is the board's second timer, which nothing else uses.
    unsafe { write_volatile(RELOAD, PERIOD_COUNTS + 2 * round) }
    // SAFETY: as above; it is enabled, with its interrupt.
    unsafe { write_volatile(CONTROL, 0b1001) }
    // SAFETY: the caller says that its handler is there. It calls no kernel.
    unsafe { super::enable_interrupt(IRQ, priority) }
}

/// Serves the interrupt.
pub fn interrupted() {
    // SAFETY: as above; a one clears the interrupt.
    unsafe { write_volatile(CLEAR, 1) }
    // An iteration takes four instructions for two of its parameter.
    cortex_m::asm::delay(WORK / 2);
}

/// Ends.
pub fn end() {
    // SAFETY: as above.
    unsafe { write_volatile(CONTROL, 0) }
}

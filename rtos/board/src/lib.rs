//! What all guests share: the emulated board (MPS2 with a Cortex-M3), their heap, how they measure their kernel, and the form in which
//! they say what they found.
//!
//! The emulator's clock counts instructions (`-icount shift=0`): an instruction takes a nanosecond.
#![no_std]

extern crate alloc;

pub mod heap;
pub mod interrupt_load;
pub mod machine;
mod report;
mod request;
pub mod sampling;
pub mod ticks;
pub mod timer;
pub mod uart;

pub use report::Report;
pub use request::Request;

use core::panic::PanicInfo;
use core::ptr::write_volatile;
use cortex_m_semihosting::{debug, hprintln};

/// The clock of the board's processor in QEMU.
pub const CLOCK_HZ: u32 = 25_000_000;

/// More than any message of the Cubit's tests with sequences of 1,021 structs.
pub const MESSAGE_BYTES_MAX: usize = 32 << 10;

const ENABLE_IRQS: *mut u32 = 0xe000_e100 as *mut u32;
const IRQ_PRIORITIES: *mut u8 = 0xe000_e400 as *mut u8;

/// Lets an interrupt of the board happen, with that priority: a larger number is less urgent.
///
/// # Safety
/// Its handler is there, and its priority allows what the handler does.
pub unsafe fn enable_interrupt(irq: u8, priority: u8) {
    // SAFETY: it is the register of this interrupt's priority, which nothing else uses.
    unsafe { write_volatile(IRQ_PRIORITIES.add(usize::from(irq)), priority) }
    // SAFETY: ones enable interrupts, zeros change nothing.
    unsafe { write_volatile(ENABLE_IRQS, 1 << irq) }
}

/// Ends the emulator.
pub fn switch_off() {
    debug::exit(debug::EXIT_SUCCESS);
}

/// Says why, and ends the emulator with a failure.
pub fn fail(reason: &PanicInfo<'_>) -> ! {
    hprintln!("{}", reason);
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}

//! What RTIC must know of the board: its interrupts and their priorities.

use cortex_m::interrupt::InterruptNumber;

/// The interrupts that are used. The last three are of no device: RTIC runs its tasks by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Interrupt {
    TIMER1 = rtorb_board::interrupt_load::IRQ as u16,
    SPARE29 = 29,
    SPARE30 = 30,
    SPARE31 = 31,
}

pub use Interrupt as interrupt;

/// Of the bits of a priority, those that RTIC uses.
pub const NVIC_PRIO_BITS: u8 = 3;

// SAFETY: each number is that of its interrupt, and below the number of those that the board has.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

/// A place in the table of vectors.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Vector {
    handler: unsafe extern "C" fn(),
    unused: usize,
}

unsafe extern "C" {
    fn TIMER1();
    fn SPARE29();
    fn SPARE30();
    fn SPARE31();
}

/// The handlers of the board's interrupts, where the processor finds them.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [Vector; 32] = {
    let mut table = [Vector { unused: 0 }; 32];
    table[Interrupt::TIMER1 as usize] = Vector { handler: TIMER1 };
    table[Interrupt::SPARE29 as usize] = Vector { handler: SPARE29 };
    table[Interrupt::SPARE30 as usize] = Vector { handler: SPARE30 };
    table[Interrupt::SPARE31 as usize] = Vector { handler: SPARE31 };
    table
};

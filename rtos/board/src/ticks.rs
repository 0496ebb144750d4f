//! The ticks of a kernel that uses the processor's own timer (SysTick).

use crate::sampling::timed;
use crate::timer::INSTRUCTIONS;
use core::ptr::{read_volatile, write_volatile};

const CONTROL: *mut u32 = 0xe000_e010 as *mut u32;
const RELOAD: *const u32 = 0xe000_e014 as *const u32;
const VALUE: *const u32 = 0xe000_e018 as *const u32;

/// A computation in which about fifty ticks of a millisecond happen.
const COMPUTATION: u32 = 25_000_000;

/// The ticks. They can be stopped where their interrupts would be a part of a cost.
#[derive(Debug)]
pub struct Ticks {
    control: u32,
}

impl Ticks {
    /// Those of the kernel, which run.
    pub fn running() -> Self {
        // SAFETY: reading the control has no effect but on a flag that nobody asks for here.
        let control = unsafe { read_volatile(CONTROL) };
        Self { control }
    }

    /// Stops them. Nothing may wait for time to pass meanwhile.
    pub fn stop(&mut self) {
        // SAFETY: the kernel counts ticks, and misses none that did not happen.
        unsafe { write_volatile(CONTROL, 0) }
    }

    /// Lets them go on.
    pub fn start(&mut self) {
        // SAFETY: the value is the kernel's own.
        unsafe { write_volatile(CONTROL, self.control) }
    }

    /// Starts them, and measures what one takes from a computation.
    pub fn cost(&mut self) -> [u32; 3] {
        self.stop();
        let undisturbed = timed(|| cortex_m::asm::delay(COMPUTATION));
        self.start();
        core::array::from_fn(|_| {
            let disturbed = timed(|| cortex_m::asm::delay(COMPUTATION));
            let ticks = disturbed / Self::period();
            disturbed.saturating_sub(undisturbed) * INSTRUCTIONS / ticks.max(1)
        })
    }

    /// Instructions since the last tick.
    pub fn since_last(&self) -> u32 {
        // SAFETY: reading the counter has no effect. It counts down from the last tick.
        let left = unsafe { read_volatile(VALUE) };
        (Self::period() - 1 - left) * INSTRUCTIONS
    }

    /// Counts from one tick to the next.
    fn period() -> u32 {
        // SAFETY: reading what the counter begins with has no effect.
        let reload = unsafe { read_volatile(RELOAD) };
        reload + 1
    }
}

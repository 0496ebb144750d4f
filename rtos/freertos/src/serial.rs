//! The serial lines: octets go from the interrupt of a UART through a stream buffer of the kernel to the task that reads.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};
use freertos_in_rust::kernel::stream_buffer::{
    xStreamBufferCreate, xStreamBufferReceive, xStreamBufferSendFromISR,
};
use freertos_in_rust::port::portYIELD_FROM_ISR;
use freertos_in_rust::types::pdFALSE;
use rtorb_board::MESSAGE_BYTES_MAX;
use rtorb_board::uart::{UARTS, Uart};
use rtorb_embedded::{Link, LinkError};

use crate::IRQ_PRIORITY;

/// The buffers of the lines: on the first this guest serves, on the second it calls.
static RECEIVED: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];

/// A line. One task at a time uses it.
pub struct Serial {
    uart: &'static Uart,
    received: &'static AtomicPtr<c_void>,
    /// How long to wait for octets, in ticks of a millisecond.
    patience: u32,
}

/// Octets that came and that no task has taken: two of the largest messages.
const WAITING_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;

impl Serial {
    /// Switches the UART with that number on. [`receive`](Link::receive) waits for at most `patience` milliseconds.
    ///
    /// # Safety
    /// It is called once for each UART.
    pub unsafe fn begin(number: usize, patience: u32) -> Self {
        let (uart, received) = (&UARTS[number], &RECEIVED[number]);
        // SAFETY: the buffer has one writer, the interrupt, and one reader, the value that is returned.
        let buffer = unsafe { xStreamBufferCreate(WAITING_BYTES_MAX, 1) };
        assert!(!buffer.is_null(), "there is no memory for a serial line");
        received.store(buffer.cast(), Ordering::Release);
        uart.begin(true);
        // SAFETY: the buffer is there, and the kernel may be called at this priority.
        unsafe { rtorb_board::enable_interrupt(uart.irq, IRQ_PRIORITY) }
        Self {
            uart,
            received,
            patience,
        }
    }
}

impl Link for Serial {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.uart.send(octets);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let buffer = self.received.load(Ordering::Acquire);
        let (start, room) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: a task calls this; it is the only reader, and `into` is writable for its length.
        match unsafe { xStreamBufferReceive(buffer.cast(), start, room, self.patience) } {
            0 => Err(LinkError::TimedOut),
            count => Ok(count),
        }
    }
}

/// Serves the interrupt with that number; false if it is no serial line's.
pub fn interrupted(irq: i16) -> bool {
    let lines = UARTS.iter().zip(&RECEIVED);
    let mut of_it = lines.filter(|(uart, _)| i16::from(uart.irq) == irq);
    of_it.next().inspect(|line| take(line.0, line.1)).is_some()
}

/// Takes the octets that came. The peer waits until they are taken.
fn take(uart: &Uart, received: &AtomicPtr<c_void>) {
    let buffer = received.load(Ordering::Acquire);
    let mut woken = pdFALSE;
    // First: an octet that comes after the last look interrupts again.
    uart.clear_interrupt();
    while let Some(octet) = uart.received() {
        let from = (&raw const octet).cast();
        // SAFETY: the interrupt is the only writer, and its priority allows calls of the kernel.
        unsafe { xStreamBufferSendFromISR(buffer.cast(), from, 1, &raw mut woken) };
    }
    portYIELD_FROM_ISR(woken);
}

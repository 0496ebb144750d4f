//! The serial lines: the board's UARTs (CMSDK), which interrupt for each octet that comes.

use core::ffi::c_void;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicPtr, Ordering};
use freertos_in_rust::kernel::stream_buffer::{
    xStreamBufferCreate, xStreamBufferReceive, xStreamBufferSendFromISR,
};
use freertos_in_rust::port::portYIELD_FROM_ISR;
use freertos_in_rust::types::pdFALSE;
use rtorb::{Link, LinkError};

/// A UART of the board.
struct Port {
    /// Where its registers begin: data, state, control, interrupt, and the divisor of the baud rate, four octets each.
    registers: usize,
    /// Its interrupt for octets that come.
    irq: u8,
    /// The kernel's stream buffer between the interrupt and the task that reads.
    received: AtomicPtr<c_void>,
}

/// The UARTs that this guest uses: on the first it serves, on the second it calls.
static PORTS: [Port; 2] = [Port::new(0x4000_4000, 0), Port::new(0x4000_5000, 2)];

/// A line. One task at a time uses it.
pub struct Serial {
    port: &'static Port,
    /// How long to wait for octets, in ticks of a millisecond.
    patience: u32,
}

const STATE: usize = 1;
const CONTROL: usize = 2;
const INTERRUPT: usize = 3;
const BAUD_DIVISOR: usize = 4;
const SEND_FULL: u32 = 1;
const RECEIVED: u32 = 2;
/// Sending, receiving, and an interrupt for each octet received.
const ENABLED: u32 = 0b1011;
const RECEIVE_INTERRUPT: u32 = 2;

const ENABLE_IRQS: *mut u32 = 0xe000_e100 as *mut u32;
const IRQ_PRIORITIES: *mut u8 = 0xe000_e400 as *mut u8;
/// Below the priority from which the kernel may be called by an interrupt.
const IRQ_PRIORITY: u8 = 0xe0;

/// Octets that came and that no task has taken: two of the largest messages.
const WAITING_OCTETS_MAX: usize = 2 * super::MESSAGE_OCTETS_MAX;

impl Port {
    const fn new(registers: usize, irq: u8) -> Self {
        Self {
            registers,
            irq,
            received: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    fn register(&self, number: usize) -> *mut u32 {
        (self.registers + 4 * number) as *mut u32
    }

    fn read(&self, number: usize) -> u32 {
        // SAFETY: it is a register of a UART of this board, and reading one has no effect on memory.
        unsafe { read_volatile(self.register(number)) }
    }

    fn write(&self, number: usize, value: u32) {
        // SAFETY: it is a register of a UART of this board, and writing one has no effect on memory.
        unsafe { write_volatile(self.register(number), value) }
    }

    /// Takes the octets that came. The peer waits until they are taken.
    fn interrupted(&self) {
        let buffer = self.received.load(Ordering::Acquire);
        let mut woken = pdFALSE;
        // First: an octet that comes after the last look at the state interrupts again.
        self.write(INTERRUPT, RECEIVE_INTERRUPT);
        while self.read(STATE) & RECEIVED != 0 {
            let octet = self.read(0) as u8;
            let from = (&raw const octet).cast();
            // SAFETY: the interrupt is the only writer, and its priority allows calls of the kernel.
            unsafe { xStreamBufferSendFromISR(buffer.cast(), from, 1, &raw mut woken) };
        }
        portYIELD_FROM_ISR(woken);
    }
}

impl Serial {
    /// Switches the UART with that number on. [`receive`](Link::receive) waits for at most `patience` milliseconds.
    ///
    /// # Safety
    /// It is called once for each UART.
    pub unsafe fn begin(number: usize, patience: u32) -> Self {
        let port = &PORTS[number];
        // SAFETY: the buffer has one writer, the interrupt, and one reader, the value that is returned.
        let buffer = unsafe { xStreamBufferCreate(WAITING_OCTETS_MAX, 1) };
        assert!(!buffer.is_null(), "there is no memory for a serial line");
        port.received.store(buffer.cast(), Ordering::Release);
        port.write(BAUD_DIVISOR, 16);
        port.write(CONTROL, ENABLED);
        // SAFETY: it is the register of this interrupt's priority, which nothing else uses.
        unsafe { write_volatile(IRQ_PRIORITIES.add(usize::from(port.irq)), IRQ_PRIORITY) }
        // SAFETY: ones enable interrupts, zeros change nothing.
        unsafe { write_volatile(ENABLE_IRQS, 1 << port.irq) }
        Self { port, patience }
    }
}

impl Link for Serial {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        for octet in octets {
            while self.port.read(STATE) & SEND_FULL != 0 {}
            self.port.write(0, u32::from(*octet));
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let buffer = self.port.received.load(Ordering::Acquire);
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
    let port = PORTS.iter().find(|port| i16::from(port.irq) == irq);
    port.inspect(|port| port.interrupted()).is_some()
}

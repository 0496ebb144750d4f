//! The board's UARTs (CMSDK).

use core::ptr::{read_volatile, write_volatile};
use rtorb_embedded::{Link, LinkError};

/// A UART: data, state, control, interrupt, and the divisor of the baud rate, four octets each.
#[derive(Debug)]
pub struct Uart {
    registers: usize,
    /// Its interrupt for octets that come.
    pub irq: u8,
}

/// A line without interrupts: the task that uses it asks again and again.
#[derive(Debug)]
pub struct Polled(pub &'static Uart);

/// The first two.
pub static UARTS: [Uart; 2] = [Uart::at(0x4000_4000, 0), Uart::at(0x4000_5000, 2)];

const STATE: usize = 1;
const CONTROL: usize = 2;
const INTERRUPT: usize = 3;
const BAUD_DIVISOR: usize = 4;
const SEND_FULL: u32 = 1;
const RECEIVED: u32 = 2;
const SENDS_AND_RECEIVES: u32 = 0b11;
const INTERRUPTS_WHEN_RECEIVED: u32 = 0b1000;
const RECEIVE_INTERRUPT: u32 = 2;

impl Uart {
    const fn at(registers: usize, irq: u8) -> Self {
        Self { registers, irq }
    }

    /// Switches it on, with an interrupt for each octet received or without.
    pub fn begin(&self, interrupts: bool) {
        let interrupts = if interrupts {
            INTERRUPTS_WHEN_RECEIVED
        } else {
            0
        };
        self.write(BAUD_DIVISOR, 16);
        self.write(CONTROL, SENDS_AND_RECEIVES | interrupts);
    }

    /// Sends all octets.
    pub fn send(&self, octets: &[u8]) {
        for octet in octets {
            while self.read(STATE) & SEND_FULL != 0 {}
            self.write(0, u32::from(*octet));
        }
    }

    /// Takes an octet that came; the peer waits until it is taken.
    pub fn received(&self) -> Option<u8> {
        let has_one = self.read(STATE) & RECEIVED != 0;
        has_one.then(|| self.read(0) as u8)
    }

    /// Ends its interrupt. An octet that comes later interrupts again.
    pub fn clear_interrupt(&self) {
        self.write(INTERRUPT, RECEIVE_INTERRUPT);
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
}

impl Link for Polled {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.0.send(octets);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let Some((first, rest)) = into.split_first_mut() else {
            return Ok(0);
        };
        *first = loop {
            if let Some(octet) = self.0.received() {
                break octet;
            }
        };
        let more = rest.iter_mut().map_while(|place| {
            *place = self.0.received()?;
            Some(())
        });
        Ok(1 + more.count())
    }
}

//! What the host asks of a guest, by the command line that semihosting has.

use core::str;
use cortex_m_semihosting::syscall1;

/// What a guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Serves its objects.
    Serve,
    /// Measures its kernel in that many rounds, says what it found, and switches itself off.
    Measure { rounds: u32 },
}

/// The semihosting operation SYS_GET_CMDLINE's block: where to write, and how much room there is.
#[repr(C)]
struct Block {
    start: *mut u8,
    length: usize,
}

impl Request {
    /// Reads `measure ROUNDS` among the words of the command line.
    ///
    /// # Panics
    /// When the number is none.
    pub fn read() -> Self {
        let mut line = [0; 128];
        let mut block = Block {
            start: line.as_mut_ptr(),
            length: line.len(),
        };
        // SAFETY: the emulator writes into `line`, within its length.
        let refused = unsafe { syscall1!(GET_CMDLINE, &raw mut block) };
        let length = block.length.min(line.len());
        let text = str::from_utf8(&line[..length]).unwrap_or_default();
        let mut words = text.split([' ', '\0']);
        if refused != 0 || !words.any(|word| word == "measure") {
            return Self::Serve;
        }
        let rounds = words.next().and_then(|word| word.parse().ok());
        let rounds = rounds.expect("the number of rounds follows");
        Self::Measure { rounds }
    }
}

//! Copies of the octets in one process, without another one that answers: the limit of any exchange of many octets.

use std::convert::Infallible;
use std::hint::black_box;
use std::io;

use super::{BUFFER_BYTES, check_sizes};
use crate::contestants::burst::{Burst, Samples};

/// Waits for its end, as servers do.
///
/// # Errors
/// None.
pub fn serve(ready: impl FnOnce(&str)) -> io::Result<()> {
    ready("nobody");
    loop {
        std::thread::park();
    }
}

/// The octets of a request and a reply, from and to.
#[derive(Debug)]
pub struct Copies {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Copies {
    /// Buffers for the largest message.
    #[must_use]
    pub fn new() -> Self {
        Self {
            from: vec![1; BUFFER_BYTES],
            to: vec![0; BUFFER_BYTES],
        }
    }

    /// Times a burst: in each, the octets of a request are copied once, and those of its reply back.
    ///
    /// # Errors
    /// That the messages do not fit.
    pub fn burst(&mut self, burst: &Burst) -> Result<Samples, String> {
        check_sizes(burst, BUFFER_BYTES)?;
        let mut samples = Samples::for_burst(burst);
        let copy = || {
            let Self { from, to } = self;
            to[..burst.request_bytes].copy_from_slice(&from[..burst.request_bytes]);
            let to = black_box(to);
            from[..burst.reply_bytes].copy_from_slice(&to[..burst.reply_bytes]);
            black_box(from);
            Ok::<_, Infallible>(())
        };
        samples.time(burst, copy, |()| true)?;
        Ok(samples)
    }
}

impl Default for Copies {
    fn default() -> Self {
        Self::new()
    }
}

//! The simulated transport: two pipes with a delay, a bound, half-closes and resets.

use std::collections::VecDeque;

use crate::random::Random;

/// The errors of Linux that a reset connection and a half-closed one give to a sender.
pub(crate) const RESET: i32 = 104;
pub(crate) const PIPE: i32 = 32;

/// One connection.
pub(crate) struct Link {
    pub(crate) to_server: Pipe,
    pub(crate) to_client: Pipe,
}

impl Link {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            to_server: Pipe::new(random),
            to_client: Pipe::new(random),
        }
    }

    /// Breaks the connection: bytes on their way are lost, and both ends get an error.
    pub(crate) fn reset(&mut self) {
        for pipe in [&mut self.to_server, &mut self.to_client] {
            pipe.chunks.clear();
            pipe.bytes = 0;
            pipe.is_reset = true;
        }
    }
}

/// One direction.
pub(crate) struct Pipe {
    /// Bytes with the time of their arrival, in order.
    chunks: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    bytes_max: usize,
    delay_ns_max: usize,
    is_finished: bool,
    is_reset: bool,
}

/// What a receiver gets.
pub(crate) enum Received {
    Bytes(usize),
    Nothing,
    End,
    Reset,
}

impl Pipe {
    fn new(random: &mut Random) -> Self {
        Self {
            chunks: VecDeque::new(),
            bytes: 0,
            bytes_max: 16 + random.below(20_000),
            delay_ns_max: [1, 1000, 1_000_000][random.below(3)],
            is_finished: false,
            is_reset: false,
        }
    }

    /// Takes some of the bytes; an error if the connection is broken.
    pub(crate) fn send(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        random: &mut Random,
    ) -> Result<usize, i32> {
        if self.is_reset {
            return Err(RESET);
        }
        if self.is_finished {
            return Err(PIPE);
        }
        let most = bytes.len().min(self.bytes_max - self.bytes);
        let count = if random.one_in(2) {
            most
        } else {
            random.below(most + 1)
        };
        if count > 0 {
            let last = self.chunks.back().map_or(0, |chunk| chunk.0);
            let arrival = (now_ns + random.below(self.delay_ns_max) as u64).max(last);
            self.chunks.push_back((arrival, bytes[..count].to_vec()));
            self.bytes += count;
        }
        Ok(count)
    }

    /// Receives some of the bytes that have arrived.
    pub(crate) fn receive(
        &mut self,
        into: &mut [u8],
        now_ns: u64,
        random: &mut Random,
    ) -> Received {
        if self.is_reset {
            return Received::Reset;
        }
        let Some((arrival, chunk)) = self.chunks.front_mut() else {
            return if self.is_finished {
                Received::End
            } else {
                Received::Nothing
            };
        };
        if *arrival > now_ns || into.is_empty() {
            return Received::Nothing;
        }
        let most = chunk.len().min(into.len());
        let count = if random.one_in(2) {
            most
        } else {
            1 + random.below(most)
        };
        into[..count].copy_from_slice(&chunk[..count]);
        chunk.drain(..count);
        if chunk.is_empty() {
            self.chunks.pop_front();
        }
        self.bytes -= count;
        Received::Bytes(count)
    }

    /// The sender sends no more; what is on its way arrives.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// When the next bytes arrive.
    pub(crate) fn next_arrival(&self) -> Option<u64> {
        self.chunks.front().map(|chunk| chunk.0)
    }
}

//! The counted clients: nine low-priority threads and a high-priority one in one process, as in P1 2.2.2.

use std::error::Error;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, OnceLock};

use rtorb::{Orb, Strategies};
use rtorb_os::clock::{monotonic_ns, sleep_until};

use super::{Priorities, Run};
use crate::contestants::CALL_TIMEOUT;
use crate::contestants::clients::fifo;
use crate::contestants::cubit::idl::Cubit;
use crate::processes::questions;

/// Threads that wait for their turn, each with a reference of its own.
///
/// They are told by pipes, since a lock or a futex would be counted as if it were the ORB's.
#[derive(Debug)]
pub struct Clients {
    /// The high-priority one first.
    turns: Vec<PipeWriter>,
    finished: PipeReader,
    /// What the first call that failed met.
    failure: Arc<OnceLock<String>>,
}

impl Clients {
    /// Starts the threads: one calls the second reference, the others the first.
    ///
    /// # Errors
    /// What the ORB said, or that the host refused threads or pipes.
    pub fn start(
        preset: &str,
        priorities: Priorities,
        references: [&str; 2],
    ) -> Result<Self, Box<dyn Error>> {
        let orb = Orb::builder()
            .strategies(Strategies::preset(preset)?)
            .round_trip_timeout(Some(CALL_TIMEOUT))
            .build()?;
        let (finished, tell_finished) = io::pipe()?;
        let failure = Arc::default();
        let mut turns = Vec::new();
        let [low, high] = references;
        let lows = (0..LOW_CLIENTS).map(|_| ("low", low, priorities.low));
        for (name, reference, priority) in [("high", high, priorities.high)].into_iter().chain(lows)
        {
            let (turn, tell_turn) = io::pipe()?;
            let mut client = Client {
                cubit: Cubit::narrow(&orb.string_to_object(reference)?)?,
                turn,
                finished: tell_finished.try_clone()?,
                failure: Arc::clone(&failure),
            };
            rtorb_os::thread::spawn(name, &fifo(priority), move || client.take_turns())?;
            turns.push(tell_turn);
        }
        Ok(Self {
            turns,
            finished,
            failure,
        })
    }

    /// Has clients make the calls of each question, a [`Run`], until standard input ends. Answers how many answers were wrong.
    ///
    /// # Errors
    /// What the input or output said.
    pub fn serve(mut self) -> Result<(), String> {
        questions::serve(|run| self.run(&run))
    }

    fn run(&mut self, run: &Run) -> Result<u32, String> {
        let clients = self.turns.len().min(run.low_clients as usize + 1);
        let wrong = self.take_turns(clients, run);
        match self.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => wrong.map_err(|error| error.to_string()),
        }
    }

    fn take_turns(&mut self, clients: usize, run: &Run) -> io::Result<u32> {
        // The high-priority one last: at once it would be far ahead before the others had begun.
        for (index, turn) in self.turns[..clients].iter_mut().enumerate().rev() {
            let period_ns = if index == 0 {
                run.high_period_ns
            } else {
                run.low_period_ns
            };
            let words = [run.count, period_ns].map(u32::to_le_bytes);
            turn.write_all(words.as_flattened())?;
        }
        let mut wrong = 0;
        for _ in 0..clients {
            let mut of_client = [0; 4];
            self.finished.read_exact(&mut of_client)?;
            wrong += u32::from_le_bytes(of_client);
        }
        Ok(wrong)
    }
}

/// What one thread has.
#[derive(Debug)]
struct Client {
    cubit: Cubit,
    turn: PipeReader,
    finished: PipeWriter,
    failure: Arc<OnceLock<String>>,
}

impl Client {
    /// Makes the calls of each turn until there are no more turns.
    fn take_turns(&mut self) {
        let mut words = [[0; 4]; 2];
        while self.turn.read_exact(words.as_flattened_mut()).is_ok() {
            let [count, period_ns] = words.map(u32::from_le_bytes);
            let wrong = self.calls(count, period_ns);
            // The other end is closed when the process ends, and then nobody wants to know.
            let _ = self.finished.write_all(&wrong.to_le_bytes());
        }
    }

    /// Answers how many answers were wrong.
    fn calls(&mut self, count: u32, period_ns: u32) -> u32 {
        let mut wrong = 0;
        let mut next_ns = monotonic_ns();
        for index in 0..count {
            if period_ns > 0 {
                next_ns += u64::from(period_ns);
                sleep_until(next_ns);
            }
            match self.cubit.cube_octet(ARGUMENT) {
                Ok(answer) => wrong += u32::from(answer != ANSWER),
                Err(exception) => {
                    // It is refused if another client failed before.
                    let _ = self.failure.set(format!("call {index}: {exception}"));
                    break;
                }
            }
        }
        wrong
    }
}

/// Beside the high-priority one, as in P1 2.2.2.
pub const LOW_CLIENTS: u32 = 9;

/// P1's call.
const ARGUMENT: u8 = 7;
const ANSWER: u8 = ARGUMENT.wrapping_mul(ARGUMENT).wrapping_mul(ARGUMENT);

//! The counted clients: nine low-priority threads and a high-priority one in one process, as in P1 2.2.2.
//!
//! ```text
//! run LOW COUNT PERIOD-US   the high-priority client and so many low-priority ones make so many calls each, the former
//!                           one each period (0: as fast as it can)
//! ran WRONG ELAPSED-NS
//! ```

use std::fmt::Write as _;
use std::io::{self, BufReader, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{Orb, Strategies};
use rtorb_os::clock::{monotonic_ns, sleep_until};

use super::Priorities;
use super::counts::answer;
use crate::contestants::CALL_TIMEOUT;
use crate::contestants::cubit::idl::Cubit;

/// Threads that wait for their turn, each with a reference of its own.
///
/// They are told by pipes, since a lock or a futex would be counted as if it were the ORB's.
#[derive(Debug)]
pub struct Clients {
    /// The high-priority one first.
    turns: Vec<PipeWriter>,
    finished: PipeReader,
    /// What the first call that failed met.
    failure: Arc<Mutex<Option<String>>>,
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
    ) -> Result<Self, String> {
        let strategies = Strategies::preset(preset).map_err(|error| error.to_string())?;
        let orb = Orb::builder()
            .strategies(strategies)
            .round_trip_timeout(Some(CALL_TIMEOUT))
            .build()
            .map_err(|error| error.to_string())?;
        let (finished, tell_finished) = io::pipe().map_err(|error| error.to_string())?;
        let mut clients = Self {
            turns: Vec::new(),
            finished,
            failure: Arc::default(),
        };
        let [low, high] = references;
        clients.add(&orb, "high", high, priorities.high, &tell_finished)?;
        for _ in 0..LOW_CLIENTS {
            clients.add(&orb, "low", low, priorities.low, &tell_finished)?;
        }
        Ok(clients)
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub fn serve(mut self) -> io::Result<()> {
        answer(
            BufReader::new(io::stdin()),
            io::stdout(),
            |question, text| match Run::parse(question) {
                Some(run) => self.run(&run, text),
                None => Err(format!("not understood: {question:?}")),
            },
        )
    }

    fn add(
        &mut self,
        orb: &Orb,
        name: &str,
        reference: &str,
        priority: u8,
        tell_finished: &PipeWriter,
    ) -> Result<(), String> {
        let object = orb
            .string_to_object(reference)
            .map_err(|exception| exception.to_string())?;
        let (turn, tell_turn) = io::pipe().map_err(|error| error.to_string())?;
        let mut client = Client {
            cubit: Cubit::narrow(&object).map_err(|exception| exception.to_string())?,
            turn,
            finished: tell_finished
                .try_clone()
                .map_err(|error| error.to_string())?,
            failure: Arc::clone(&self.failure),
        };
        let config = ThreadConfig {
            policy: (priority > 0).then_some(SchedPolicy::Fifo(priority)),
            ..ThreadConfig::default()
        };
        rtorb_os::thread::spawn(name, &config, move || client.take_turns())
            .map_err(|refused| refused.to_string())?;
        self.turns.push(tell_turn);
        Ok(())
    }

    fn run(&mut self, run: &Run, text: &mut String) -> Result<(), String> {
        let clients = self.turns.len().min(run.low as usize + 1);
        let begin_ns = monotonic_ns();
        // The high-priority one last: at once it would be far ahead before the others had begun.
        for (index, turn) in self.turns[..clients].iter_mut().enumerate().rev() {
            let period_ns = if index == 0 { run.period_us * 1_000 } else { 0 };
            turn.write_all(
                &Turn {
                    count: run.count,
                    period_ns,
                }
                .octets(),
            )
            .map_err(|error| error.to_string())?;
        }
        let mut wrong = 0;
        for _ in 0..clients {
            let mut four = [0; 4];
            self.finished
                .read_exact(&mut four)
                .map_err(|error| error.to_string())?;
            wrong += u64::from(u32::from_le_bytes(four));
        }
        let elapsed_ns = monotonic_ns() - begin_ns;
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure.as_deref() {
            Some(failure) => Err(failure.to_owned()),
            None => write!(text, "ran {wrong} {elapsed_ns}").map_err(|error| error.to_string()),
        }
    }
}

/// What all clients together are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    low: u32,
    count: u32,
    period_us: u32,
}

impl Run {
    /// Without a heap call.
    fn parse(question: &str) -> Option<Self> {
        let (low, rest) = question.strip_prefix("run ")?.split_once(' ')?;
        let (count, period_us) = rest.split_once(' ')?;
        Some(Self {
            low: low.parse().ok()?,
            count: count.parse().ok()?,
            period_us: period_us.parse().ok().filter(|us| *us <= PERIOD_US_MAX)?,
        })
    }
}

/// What one client is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    count: u32,
    /// 0 is as fast as it can.
    period_ns: u32,
}

impl Turn {
    fn octets(self) -> [u8; 8] {
        (u64::from(self.count) << 32 | u64::from(self.period_ns)).to_le_bytes()
    }

    fn from_octets(octets: [u8; 8]) -> Self {
        let both = u64::from_le_bytes(octets);
        Self {
            count: (both >> 32) as u32,
            period_ns: both as u32,
        }
    }
}

/// What one thread has.
#[derive(Debug)]
struct Client {
    cubit: Cubit,
    turn: PipeReader,
    finished: PipeWriter,
    failure: Arc<Mutex<Option<String>>>,
}

impl Client {
    /// Makes the calls of each turn until there are no more turns.
    fn take_turns(&mut self) {
        let mut octets = [0; 8];
        while self.turn.read_exact(&mut octets).is_ok() {
            let wrong = self.calls(Turn::from_octets(octets));
            // The other end is closed when the process ends, and then nobody wants to know.
            let _ = self.finished.write_all(&wrong.to_le_bytes());
        }
    }

    /// Answers how many answers were wrong.
    fn calls(&mut self, turn: Turn) -> u32 {
        let mut wrong = 0;
        let mut next_ns = monotonic_ns();
        for index in 0..turn.count {
            if turn.period_ns > 0 {
                next_ns += u64::from(turn.period_ns);
                sleep_until(next_ns);
            }
            match self.cubit.cube_long(ARGUMENT) {
                Ok(answer) => wrong += u32::from(answer != ARGUMENT.pow(3)),
                Err(exception) => {
                    let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                    failure.get_or_insert_with(|| format!("call {index}: {exception}"));
                    break;
                }
            }
        }
        wrong
    }
}

/// Beside the high-priority one, as in P1 2.2.2.
pub const LOW_CLIENTS: u32 = 9;

/// A second: no longer, so that the nanoseconds of it fit.
const PERIOD_US_MAX: u32 = 1_000_000;
const ARGUMENT: i32 = -117;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_a_turn_are_read_back() {
        let run = Run {
            low: 9,
            count: 400,
            period_us: 100,
        };
        assert_eq!(Run::parse("run 9 400 100"), Some(run));
        assert_eq!(Run::parse("run 9 400"), None);
        assert_eq!(Run::parse("run 9 400 2000000"), None);
        let turn = Turn {
            count: 400,
            period_ns: 100_000,
        };
        assert_eq!(Turn::from_octets(turn.octets()), turn);
    }
}

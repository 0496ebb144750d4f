//! What a process has counted of itself, and how it tells the laboratory.

use std::fmt;
use std::io::{BufRead, Write};
use std::str::FromStr;

use rtorb_os::heap::process_heap_calls;
use rtorb_os::sync::process_lock_calls;

/// Counters of one process. They only grow: what happened meanwhile is the difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that take or give back a mutex, as P1 counts them: one critical section is two.
    pub lock_operations: u64,
    /// Locks that somebody else held when they were wanted.
    pub contended: u64,
    /// Allocations, growths and frees.
    pub heap_calls: u64,
    /// Operations on condition variables and semaphores beside those on their mutexes; `None` where they are not counted.
    pub condition_operations: Option<u64>,
}

impl Counts {
    /// Of the calling process, if it is one of ours.
    #[must_use]
    pub fn own() -> Self {
        let locks = process_lock_calls();
        Self {
            // Each lock that was taken is given back once.
            lock_operations: 2 * locks.all,
            contended: locks.contended,
            heap_calls: process_heap_calls(),
            condition_operations: None,
        }
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            lock_operations: self.lock_operations.saturating_sub(earlier.lock_operations),
            contended: self.contended.saturating_sub(earlier.contended),
            heap_calls: self.heap_calls.saturating_sub(earlier.heap_calls),
            condition_operations: self
                .condition_operations
                .zip(earlier.condition_operations)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lock_operations,
            contended,
            heap_calls,
            ..
        } = self;
        write!(
            formatter,
            "counts {lock_operations} {contended} {heap_calls}"
        )
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut numbers = line
            .strip_prefix("counts ")
            .into_iter()
            .flat_map(|rest| rest.split(' '))
            .map_while(|word| word.parse().ok());
        let mut next = || numbers.next().ok_or_else(|| format!("no counts: {line:?}"));
        Ok(Self {
            lock_operations: next()?,
            contended: next()?,
            heap_calls: next()?,
            condition_operations: None,
        })
    }
}

/// Answers each line of `input` until it ends: `counts` with the process's own, anything else with what `run` writes.
///
/// It makes no heap call itself, once the first line was answered: a question does not show in the counts.
///
/// # Errors
/// What the input or output said; that a question was not understood is told to who asked.
pub fn answer(
    mut input: impl BufRead,
    mut output: impl Write,
    mut run: impl FnMut(&str, &mut String) -> Result<(), String>,
) -> std::io::Result<()> {
    let mut question = String::with_capacity(LINE_BYTES_USUAL);
    let mut text = String::with_capacity(LINE_BYTES_USUAL);
    loop {
        question.clear();
        text.clear();
        if input.read_line(&mut question)? == 0 {
            return Ok(());
        }
        let counts = Counts::own();
        let done = match question.trim_end() {
            // A string takes whatever is written.
            "counts" => fmt::Write::write_fmt(&mut text, format_args!("{counts}"))
                .map_err(|error| error.to_string()),
            other => run(other, &mut text),
        };
        if let Err(error) = done {
            text = format!("error {}", error.replace('\n', " "));
        }
        text.push('\n');
        output.write_all(text.as_bytes())?;
        output.flush()?;
    }
}

const LINE_BYTES_USUAL: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_back_and_subtracted() {
        let counts = Counts {
            lock_operations: 20,
            contended: 3,
            heap_calls: 7,
            condition_operations: None,
        };
        assert_eq!(counts.to_string().parse(), Ok(counts));
        assert_eq!(counts.since(counts), Counts::default());
        assert!("counts 1 2".parse::<Counts>().is_err());
        assert!("ran 1 2 3".parse::<Counts>().is_err());
    }

    #[test]
    fn questions_are_answered_until_the_input_ends() {
        let mut output = Vec::new();
        let run = |question: &str, text: &mut String| match question {
            "run" => {
                text.push_str("ran");
                Ok(())
            }
            _ => Err(format!("not understood: {question}")),
        };
        answer(&b"run\nwalk\ncounts\n"[..], &mut output, run).unwrap();
        let text = String::from_utf8_lossy(&output);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["ran", "error not understood: walk"]);
        assert!(lines[2].parse::<Counts>().is_ok());
    }
}

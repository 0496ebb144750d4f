//! A thread on each CPU that runs only while nobody else wants the CPU: it keeps it awake, and knows when it was idle.
//!
//! ```text
//! start 3000                    until when it looks, in ns of CLOCK_MONOTONIC
//! started
//! finish                        of each CPU: its number, how many gaps, how many without room; then 2 numbers a gap
//! watched 1 1000 0
//! ```

use std::io::{self, BufReader, Write};

use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};

use super::component::work::STEP_NS_MAX;
use crate::contestants::rates::answer_lines;
use crate::processes::child::number;
use crate::processes::gaps::{Gap, Gaps};

/// The process.
#[derive(Debug)]
pub(crate) struct Watchers {
    room: usize,
    cpus: Vec<usize>,
    threads: Vec<JoinHandle<Option<Watched>>>,
}

/// What a CPU did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// From when on it was looked at.
    pub(crate) begin_ns: u64,
    /// Until when.
    pub(crate) end_ns: u64,
    /// When its watcher did not run, in order.
    pub(crate) gaps: Vec<Gap>,
    /// Gaps that had no room: from the last one with room on, nothing is known.
    pub(crate) beyond_room: u64,
}

impl Watchers {
    /// For these CPUs, with room for so many gaps of each.
    pub(crate) fn new(room: usize, cpus: Vec<usize>) -> Self {
        Self {
            room: room.min(GAPS_MAX),
            cpus,
            threads: Vec::new(),
        }
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        answer_lines(
            BufReader::new(io::stdin()),
            io::stdout(),
            |question, output| self.answer(question, output),
        )
    }

    fn answer(&mut self, question: &str, output: &mut impl Write) -> Result<(), String> {
        let written = match question.split_once(' ') {
            Some(("start", end_ns)) => {
                self.start(number(end_ns)?)?;
                writeln!(output, "started")
            }
            None if question == "finish" => self.finish(output),
            _ => return Err(format!("not understood: {question:?}")),
        };
        written.map_err(|error| error.to_string())
    }

    fn start(&mut self, end_ns: u64) -> Result<(), String> {
        for cpu in &self.cpus {
            let config = ThreadConfig {
                policy: Some(SchedPolicy::Idle),
                affinity: vec![*cpu],
                stack_bytes: None,
            };
            let gaps = Gaps::with_room(STEP_NS_MAX, self.room);
            let thread = spawn("watcher", &config, move || watch(gaps, end_ns));
            self.threads
                .push(thread.map_err(|refused| refused.to_string())?);
        }
        Ok(())
    }

    fn finish(&mut self, output: &mut impl Write) -> io::Result<()> {
        let cpus = self.cpus.iter().zip(self.threads.drain(..));
        let mut line = "watched".to_owned();
        let mut octets = Vec::new();
        for (cpu, thread) in cpus {
            let watched = thread.join().ok().flatten().unwrap_or_default();
            let gaps = watched.gaps.len();
            line.push_str(&format!(" {cpu} {gaps} {}", watched.beyond_room));
            let mut word = |word: u64| octets.extend_from_slice(&word.to_le_bytes());
            word(watched.begin_ns);
            word(watched.end_ns);
            for gap in &watched.gaps {
                word(gap.begin_ns);
                word(gap.length_ns << 1 | u64::from(gap.switched));
            }
        }
        writeln!(output, "{line}")?;
        output.write_all(&octets)
    }
}

fn watch(mut gaps: Gaps, end_ns: u64) -> Watched {
    let begin_ns = gaps.begin();
    gaps.spin_until(end_ns);
    Watched {
        begin_ns,
        end_ns: monotonic_ns(),
        gaps: gaps.kept().to_vec(),
        beyond_room: gaps.beyond_room(),
    }
}

/// How many octets follow the line.
///
/// # Errors
/// The line, if it announces none.
pub(crate) fn bytes_after(line: &str) -> Result<usize, String> {
    let octets = |gaps: usize| gaps.checked_mul(16)?.checked_add(16);
    let mut each = head(line)?.into_iter().map(|(_, gaps, _)| octets(gaps));
    let sum = each.try_fold(0_usize, |sum, one| sum.checked_add(one?));
    sum.filter(|sum| *sum <= BYTES_MAX)
        .ok_or_else(|| line.to_owned())
}

/// Puts the line and the octets after it together: CPUs and what they did.
///
/// # Errors
/// As [`bytes_after`].
pub(crate) fn read(line: &str, octets: &[u8]) -> Result<Vec<(usize, Watched)>, String> {
    let words = octets.as_chunks::<8>().0.iter();
    let mut words = words.map(|eight| u64::from_le_bytes(*eight));
    let mut next = || words.next().ok_or_else(|| line.to_owned());
    let mut found = Vec::new();
    for (cpu, gaps, beyond_room) in head(line)? {
        let mut watched = Watched {
            begin_ns: next()?,
            end_ns: next()?,
            gaps: Vec::with_capacity(gaps.min(GAPS_MAX)),
            beyond_room,
        };
        for _ in 0..gaps {
            let (begin_ns, length) = (next()?, next()?);
            watched.gaps.push(Gap {
                begin_ns,
                length_ns: length >> 1,
                switched: length & 1 == 1,
            });
        }
        found.push((cpu, watched));
    }
    Ok(found)
}

fn head(line: &str) -> Result<Vec<(usize, usize, u64)>, String> {
    let wrong = || line.strip_prefix("error ").unwrap_or(line).to_owned();
    let numbers = line.strip_prefix("watched").ok_or_else(wrong)?;
    let numbers: Result<Vec<u64>, _> = numbers.split_whitespace().map(str::parse).collect();
    let numbers = numbers.map_err(|_| wrong())?;
    let three = numbers.as_chunks::<3>().0.iter();
    Ok(three
        .map(|[cpu, gaps, beyond]| (*cpu as usize, *gaps as usize, *beyond))
        .collect())
}

/// Of a CPU: twenty-four mebibytes.
const GAPS_MAX: usize = 1 << 20;
const BYTES_MAX: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_watched_is_read_back() {
        let cpu = *rtorb_os::sched::current_affinity().last().unwrap();
        let mut watchers = Watchers::new(1_000, vec![cpu]);
        let mut output = Vec::new();
        let end_ns = monotonic_ns() + 5_000_000;
        watchers
            .answer(&format!("start {end_ns}"), &mut output)
            .unwrap();
        watchers.answer("finish", &mut output).unwrap();
        let text = output.strip_prefix(b"started\n").unwrap();
        let at = text.iter().position(|octet| *octet == b'\n').unwrap();
        let line = std::str::from_utf8(&text[..at]).unwrap();
        let octets = &text[at + 1..];
        assert_eq!(bytes_after(line), Ok(octets.len()));
        let read = read(line, octets).unwrap();
        let [(found, watched)] = &read[..] else {
            panic!("{read:?}")
        };
        assert_eq!(*found, cpu);
        assert!(watched.begin_ns < watched.end_ns && watched.end_ns >= end_ns);
        let mut pairs = watched.gaps.windows(2);
        assert!(pairs.all(|pair| pair[0].end_ns() <= pair[1].begin_ns));
        assert!(bytes_after("error no").is_err());
    }
}

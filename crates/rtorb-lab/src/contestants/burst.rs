//! A burst: calls of one kind, one after another or at a rate, timed one by one by a client process.
//!
//! The laboratory sends a client a line and gets the samples back, so that every contestant, in whatever language,
//! is driven alike and stays warm while the others have their turn:
//!
//! ```text
//! call long 0 200 2000 100000000 76 28 0    VERB OPERATION LEN WARM-UP COUNT BUDGET-NS REQUEST-BYTES REPLY-BYTES PERIOD-NS
//! samples 2000 0 13370000                   COUNT WRONG ELAPSED-NS, then COUNT unsigned 64-bit little-endian
//! ```
//!
//! A client that cannot do it answers `error TEXT` and goes on.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::str::FromStr;
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::timer::PeriodicTimer;

use crate::contestants::operations::Operation;
use crate::error::LabError;
use crate::processes::Process;
use crate::processes::child::ready;

/// What a client is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// What is timed.
    pub verb: Verb,
    /// Of which operation.
    pub operation: Operation,
    /// Elements of a sequence.
    pub len: usize,
    /// Calls made first and not counted.
    pub warm_up: usize,
    /// Calls that are counted.
    pub count: usize,
    /// The burst ends early, with fewer samples, when it has taken so long: real-time tasks that never leave the CPU
    /// are throttled.
    pub budget_ns: u64,
    /// The octets of the request, for contestants that know no messages.
    pub request_bytes: usize,
    /// The octets of the reply.
    pub reply_bytes: usize,
    /// From the release of a call to that of the next one; 0 makes one directly after the other.
    pub period_ns: u64,
}

impl Burst {
    /// Has a client run it.
    ///
    /// # Errors
    /// What the client said went wrong, or that it ended or was silent.
    pub fn ask(&self, client: &mut Process) -> Result<Samples, LabError> {
        let within = Duration::from_nanos(self.budget_ns);
        let count = |header: &SamplesHeader| header.count;
        let (header, times_ns) = client.ask_for_samples(self, within, count)?;
        Ok(Samples {
            times_ns,
            wrong: header.wrong,
            elapsed_ns: header.elapsed_ns,
        })
    }
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// The call.
    Call,
    /// What the servant does with the argument, here, without a call.
    Work,
    /// Writing the argument to a message and reading it back, here, without a call: half of what a call marshals.
    Marshal,
}

impl Verb {
    /// The word in the line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Work => "work",
            Self::Marshal => "marshal",
        }
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            operation,
            len,
            warm_up,
            count,
            budget_ns,
            request_bytes,
            reply_bytes,
            period_ns,
        } = self;
        let verb = verb.word();
        write!(
            formatter,
            "{verb} {operation} {len} {warm_up} {count} {budget_ns} {request_bytes} {reply_bytes} {period_ns}"
        )
    }
}

impl FromStr for Burst {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [
            verb,
            operation,
            len,
            warm_up,
            count,
            budget_ns,
            request_bytes,
            reply_bytes,
            period_ns,
        ] = words[..]
        else {
            return Err(format!(
                "a burst has 9 words, not {}: {line:?}",
                words.len()
            ));
        };
        let number = |word: &str| {
            word.parse::<usize>()
                .map_err(|_| format!("not a number: {word:?}"))
        };
        Ok(Self {
            verb: [Verb::Call, Verb::Work, Verb::Marshal]
                .into_iter()
                .find(|known| known.word() == verb)
                .ok_or_else(|| format!("no such verb: {verb:?}"))?,
            operation: operation.parse()?,
            len: number(len)?,
            warm_up: number(warm_up)?,
            count: number(count)?.min(SAMPLES_MAX),
            budget_ns: number(budget_ns)? as u64,
            request_bytes: number(request_bytes)?,
            reply_bytes: number(reply_bytes)?,
            period_ns: number(period_ns)? as u64,
        })
    }
}

/// The samples of a burst.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The time of each call in nanoseconds, in the order they were made.
    pub times_ns: Vec<u64>,
    /// How many answers were wrong.
    pub wrong: u64,
    /// From before the first counted call until the server had served the last.
    pub elapsed_ns: u64,
}

impl Samples {
    /// With room for a burst, so that recording makes no heap call.
    #[must_use]
    pub fn for_burst(burst: &Burst) -> Self {
        Self {
            times_ns: Vec::with_capacity(burst.count),
            wrong: 0,
            elapsed_ns: 0,
        }
    }

    /// Times `call` as often as the burst says, or as its budget allows: from before it, or at a rate from its planned release.
    /// `call` answers whether the result is right, and
    /// is given the chance to check it after the clock was read.
    ///
    /// # Errors
    /// The first error of a call, with the number of the call that met it.
    pub fn time<T, E: fmt::Display>(
        &mut self,
        burst: &Burst,
        mut call: impl FnMut() -> Result<T, E>,
        is_right: impl Fn(&T) -> bool,
    ) -> Result<(), String> {
        for index in 0..burst.warm_up {
            call().map_err(|error| format!("warm-up call {index}: {error}"))?;
        }
        let begin_ns = monotonic_ns();
        let mut timer = (burst.period_ns > 0)
            .then(|| PeriodicTimer::starting_at(begin_ns + burst.period_ns, burst.period_ns));
        for index in 0..burst.count {
            let before_ns = match &mut timer {
                Some(timer) => timer.wait_each().scheduled_ns,
                None => monotonic_ns(),
            };
            let result = call();
            let after_ns = monotonic_ns();
            let result = result.map_err(|error| format!("call {index}: {error}"))?;
            self.wrong += u64::from(!is_right(&result));
            // The capacity was reserved by `for_burst`.
            self.times_ns.push(after_ns - before_ns);
            if after_ns - begin_ns > burst.budget_ns {
                break;
            }
        }
        self.elapsed_ns = monotonic_ns() - begin_ns;
        Ok(())
    }

    /// Calls a second over the elapsed time; `None` when nothing was measured.
    #[must_use]
    pub fn calls_per_second(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.times_ns.len() as f64 * 1e9 / self.elapsed_ns as f64)
    }

    /// Writes the answer to a burst.
    ///
    /// # Errors
    /// What the output said.
    pub fn write(&self, output: &mut impl Write) -> io::Result<()> {
        writeln!(
            output,
            "samples {} {} {}",
            self.times_ns.len(),
            self.wrong,
            self.elapsed_ns
        )?;
        let bytes: Vec<u8> = self
            .times_ns
            .iter()
            .flat_map(|time_ns| time_ns.to_le_bytes())
            .collect();
        output.write_all(&bytes)?;
        output.flush()
    }
}

/// What the laboratory reads before the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplesHeader {
    /// How many samples follow, eight octets each.
    pub count: usize,
    /// How many answers were wrong.
    pub wrong: u64,
    /// From before the first counted call until the server had served the last.
    pub elapsed_ns: u64,
}

impl FromStr for SamplesHeader {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let parsed = match words[..] {
            ["samples", count, wrong, elapsed_ns] => {
                match (count.parse(), wrong.parse(), elapsed_ns.parse()) {
                    (Ok(count), Ok(wrong), Ok(elapsed_ns)) if count <= SAMPLES_MAX => Some(Self {
                        count,
                        wrong,
                        elapsed_ns,
                    }),
                    _ => None,
                }
            }
            _ => None,
        };
        parsed.ok_or_else(|| line.strip_prefix("error ").unwrap_or(line).to_owned())
    }
}

/// Answers bursts on standard input until it ends.
pub(crate) fn answer(run: impl FnMut(&Burst) -> Result<Samples, String>) -> Result<(), String> {
    ready("");
    serve(io::stdin().lock(), io::stdout(), run).map_err(|error| error.to_string())
}

/// The loop of a client process: answers each burst on `input` by its samples on `output`, until `input` ends.
///
/// # Errors
/// What the input or output said; that a burst went wrong is told to the laboratory, not to the caller.
pub fn serve(
    input: impl BufRead,
    mut output: impl Write,
    mut run: impl FnMut(&Burst) -> Result<Samples, String>,
) -> io::Result<()> {
    for line in input.lines() {
        let answer = line?.parse::<Burst>().and_then(|burst| run(&burst));
        match answer {
            Ok(samples) => samples.write(&mut output)?,
            Err(error) => {
                writeln!(output, "error {}", error.replace('\n', " "))?;
                output.flush()?;
            }
        }
    }
    Ok(())
}

/// Sixteen mebibytes of samples: no experiment asks for more in one burst.
const SAMPLES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: Burst = Burst {
        verb: Verb::Call,
        operation: Operation::OctetSequence,
        len: 1024,
        warm_up: 3,
        count: 10,
        budget_ns: 1_000_000_000,
        request_bytes: 1100,
        reply_bytes: 1052,
        period_ns: 0,
    };

    #[test]
    fn a_burst_is_read_back() {
        assert_eq!(BURST.to_string().parse(), Ok(BURST));
        assert!(
            "call long 0"
                .parse::<Burst>()
                .unwrap_err()
                .contains("9 words")
        );
        assert!(
            "sing long 0 0 0 0 0 0 0"
                .parse::<Burst>()
                .unwrap_err()
                .contains("sing")
        );
    }

    #[test]
    fn samples_are_counted_without_the_warm_up_and_without_growing() {
        let mut samples = Samples::for_burst(&BURST);
        let capacity = samples.times_ns.capacity();
        let mut calls = 0;
        let call = || -> Result<u32, String> {
            calls += 1;
            Ok(calls)
        };
        samples
            .time(&BURST, call, |answer| answer % 2 == 0)
            .unwrap();
        assert_eq!(calls, 13);
        assert_eq!((samples.times_ns.len(), samples.wrong), (10, 5));
        assert_eq!(samples.times_ns.capacity(), capacity);
    }

    #[test]
    fn a_budget_ends_a_burst() {
        let burst = Burst {
            budget_ns: 0,
            ..BURST
        };
        let mut samples = Samples::for_burst(&burst);
        samples
            .time(&burst, || Ok::<(), String>(()), |()| true)
            .unwrap();
        assert_eq!(samples.times_ns.len(), 1);
    }

    /// The first call takes three periods. The next ones begin late, and their times have the lateness.
    #[test]
    fn a_paced_call_is_timed_from_its_release() {
        const PERIOD_NS: u64 = 10_000_000;
        let burst = Burst {
            warm_up: 0,
            count: 4,
            period_ns: PERIOD_NS,
            ..BURST
        };
        let mut samples = Samples::for_burst(&burst);
        let mut calls = 0;
        let first_is_long = || {
            calls += 1;
            if calls == 1 {
                rtorb_os::clock::sleep_until(monotonic_ns() + 3 * PERIOD_NS);
            }
            Ok::<(), String>(())
        };
        samples.time(&burst, first_is_long, |()| true).unwrap();
        let times_ns = &samples.times_ns;
        assert!(times_ns[0] >= 3 * PERIOD_NS, "{times_ns:?}");
        assert!(
            times_ns[1] >= 2 * PERIOD_NS && times_ns[2] >= PERIOD_NS,
            "{times_ns:?}"
        );
    }

    #[test]
    fn a_client_answers_each_line_and_outlives_errors() {
        let input = format!("{BURST}\nnonsense\n{BURST}\n");
        let mut output = Vec::new();
        let answer = Samples {
            times_ns: vec![1, 7_000_000_000],
            wrong: 0,
            elapsed_ns: 9,
        };
        serve(input.as_bytes(), &mut output, |_| Ok(answer.clone())).unwrap();
        let text = String::from_utf8_lossy(&output);
        assert_eq!(text.matches("samples 2 0 9\n").count(), 2);
        assert_eq!(text.matches("error a burst has 9 words").count(), 1);
        // Longer than 32 bits hold.
        let stall = 7_000_000_000u64.to_le_bytes();
        assert!(output.windows(8).any(|eight| eight == stall));
    }

    #[test]
    fn an_error_is_told_in_its_words() {
        assert_eq!(
            "error no route\n".trim().parse::<SamplesHeader>(),
            Err("no route".to_owned())
        );
    }
}

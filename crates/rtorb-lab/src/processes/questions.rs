//! The questions of the laboratory to its processes, and their answers: one protocol for all of them, in whatever language.
//!
//! A process says `ready TEXT`. Then each question is a line of JSON, and so is its answer. Long series of numbers follow the answer's
//! line, each number as 64 unsigned bits, little-endian:
//!
//! ```text
//! {"verb":"call","operation":"long","count":2000,...}
//! {"series":[2000],"value":{"wrong":0,"elapsed_ns":13370000}}       then 16,000 bytes
//! ```
//!
//! What cannot be done is answered by `error TEXT`, and the next question can be asked. Every process of ours that answers
//! questions understands `"counts"`.

use std::io::{self, BufRead, Write};

use rtorb::Orb;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::child::ready;
use super::counts::Counts;

/// An answer with the series of numbers behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply<A> {
    /// What is written as JSON.
    pub value: A,
    /// What is too long for that.
    pub series: Vec<Vec<u64>>,
}

/// What may be an answer: a [`Reply`], or a value alone.
pub trait IntoReply {
    /// The value's type.
    type Value: Serialize;

    /// The answer with its series.
    fn into_reply(self) -> Reply<Self::Value>;
}

impl<A: Serialize> IntoReply for A {
    type Value = A;

    fn into_reply(self) -> Reply<A> {
        Reply {
            value: self,
            series: Vec::new(),
        }
    }
}

impl<A: Serialize> IntoReply for Reply<A> {
    type Value = A;

    fn into_reply(self) -> Self {
        self
    }
}

/// The line of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReplyLine<A> {
    /// How many numbers each series has.
    pub(super) series: Vec<usize>,
    pub(super) value: A,
}

impl<A: DeserializeOwned> ReplyLine<A> {
    /// Reads a line; its series have bounded lengths.
    ///
    /// # Errors
    /// What the process says went wrong, or that the line is no answer.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        if let Some(error) = line.strip_prefix("error ") {
            return Err(error.to_owned());
        }
        let read: Self =
            serde_json::from_str(line).map_err(|error| format!("{error}: said {line:?}"))?;
        let lengths = read.series.iter().copied();
        match lengths.fold(0, usize::saturating_add) {
            too_many if too_many > NUMBERS_MAX => Err(format!("{too_many} numbers are too many")),
            _ => Ok(read),
        }
    }
}

/// The question for the process's own [`Counts`].
pub(crate) const COUNTS: &str = "counts";

/// Says that the process is ready, and answers the questions on standard input until it ends.
///
/// # Errors
/// What the input or output said.
pub(crate) fn serve<Q: DeserializeOwned, A: IntoReply>(
    answer: impl FnMut(Q) -> Result<A, String>,
) -> Result<(), String> {
    serve_as("", answer)
}

/// The same for a process that others must find: by this text, such as a reference.
///
/// # Errors
/// As [`serve`].
pub(crate) fn serve_as<Q: DeserializeOwned, A: IntoReply>(
    text: &str,
    answer: impl FnMut(Q) -> Result<A, String>,
) -> Result<(), String> {
    ready(text);
    answer_lines(io::stdin().lock(), io::stdout(), answer).map_err(|error| error.to_string())
}

/// Serves an ORB, and answers questions in a thread of their own. Once these end, the process ends.
///
/// # Errors
/// What the host or the ORB refused.
pub(crate) fn serve_beside<Q: DeserializeOwned + 'static, A: IntoReply>(
    orb: &Orb,
    text: &str,
    answer: impl FnMut(Q) -> Result<A, String> + Send + 'static,
) -> Result<(), String> {
    let questions = move || {
        // An error means that the laboratory is gone, and then it is time to end too.
        let _ = answer_lines(io::stdin().lock(), io::stdout(), answer);
        std::process::exit(0);
    };
    rtorb_os::thread::spawn("questions", &Default::default(), questions)
        .map_err(|refused| refused.to_string())?;
    ready(text);
    orb.run().map_err(|error| error.to_string())
}

/// Answers each line of `input` until it ends. It makes no heap call itself once the first line was answered, so that a question does
/// not show in the counts.
///
/// # Errors
/// What the input or output said; what went wrong with a question is told to the laboratory.
pub(crate) fn answer_lines<Q: DeserializeOwned, A: IntoReply>(
    mut input: impl BufRead,
    mut output: impl Write,
    mut answer: impl FnMut(Q) -> Result<A, String>,
) -> io::Result<()> {
    let mut line = String::with_capacity(LINE_BYTES_USUAL);
    let mut written = Vec::with_capacity(LINE_BYTES_USUAL);
    loop {
        line.clear();
        written.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let counts = Counts::own();
        let question = line.trim_end();
        let answered = if question.trim_matches('"') == COUNTS {
            write_reply(counts, &mut written)
        } else {
            serde_json::from_str(question)
                .map_err(|error| format!("not a question: {error}: {question:?}"))
                .and_then(&mut answer)
                .and_then(|answer| write_reply(answer, &mut written))
        };
        if let Err(error) = answered {
            written.clear();
            writeln!(written, "error {}", error.replace('\n', " "))?;
        }
        output.write_all(&written)?;
        output.flush()?;
    }
}

/// An answer of a process that is asked for several things.
///
/// # Errors
/// That the answer is no JSON.
pub(crate) fn json(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn write_reply(answer: impl IntoReply, written: &mut Vec<u8>) -> Result<(), String> {
    let Reply { value, series } = answer.into_reply();
    let line = ReplyLine {
        series: series.iter().map(Vec::len).collect(),
        value,
    };
    serde_json::to_writer(&mut *written, &line).map_err(|error| error.to_string())?;
    written.push(b'\n');
    written.extend(
        series
            .iter()
            .flatten()
            .flat_map(|number| number.to_le_bytes()),
    );
    Ok(())
}

/// The series behind a line, whose lengths it says.
pub(super) fn read_series(lengths: &[usize], bytes: &[u8]) -> Vec<Vec<u64>> {
    let (numbers, _) = bytes.as_chunks();
    let mut numbers = numbers.iter().map(|eight| u64::from_le_bytes(*eight));
    let each = lengths.iter();
    each.map(|length| numbers.by_ref().take(*length).collect())
        .collect()
}

const LINE_BYTES_USUAL: usize = 256;
/// Half a gibibyte: the gaps of 31 CPUs whose watchers are full.
const NUMBERS_MAX: usize = 64 << 20;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a process answers to these lines, until its first line that is no answer.
    pub(crate) fn replies<Q: DeserializeOwned, A: IntoReply, R: DeserializeOwned>(
        questions: &str,
        answer: impl FnMut(Q) -> Result<A, String>,
    ) -> Vec<Result<Reply<R>, String>> {
        let mut output = Vec::new();
        answer_lines(questions.as_bytes(), &mut output, answer).unwrap();
        let mut rest = &output[..];
        let mut found = Vec::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(&rest[..end]).unwrap();
            rest = &rest[end + 1..];
            found.push(ReplyLine::parse(line).map(|ReplyLine { series, value }| {
                let (bytes, left) = rest.split_at(8 * series.iter().sum::<usize>());
                rest = left;
                Reply {
                    value,
                    series: read_series(&series, bytes),
                }
            }));
        }
        assert!(rest.is_empty());
        found
    }

    #[test]
    fn questions_are_answered_until_the_input_ends() {
        let mut output = Vec::new();
        let double = |number: u64| {
            (number > 0)
                .then_some(2 * number)
                .ok_or("too\nfew".to_owned())
        };
        answer_lines(&b"21\n0\n[]\n\"counts\"\n"[..], &mut output, double).unwrap();
        let text = String::from_utf8_lossy(&output);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], [r#"{"series":[],"value":42}"#, "error too few"]);
        assert!(lines[2].starts_with("error not a question: "));
        assert!(ReplyLine::<Counts>::parse(lines[3]).is_ok());
        let error = ReplyLine::<u64>::parse(lines[1]).map(|line| line.value);
        assert_eq!(error, Err("too few".to_owned()));
    }

    #[test]
    fn series_are_read_back() {
        let reply = Reply {
            value: 2.5,
            series: vec![vec![1, u64::MAX, 3], vec![], vec![1 << 40]],
        };
        let read: Vec<_> = replies("null\nnull\n", |()| Ok(reply.clone()));
        assert_eq!(read, [Ok(reply.clone()), Ok(reply)]);
    }

    #[test]
    fn too_many_numbers_are_refused() {
        let parse = ReplyLine::<()>::parse;
        let why = parse(r#"{"series":[99999999],"value":null}"#).unwrap_err();
        assert!(why.contains("too many"), "{why}");
        let more = format!(r#"{{"series":[1,{}],"value":null}}"#, usize::MAX);
        assert!(parse(&more).unwrap_err().contains("too many"));
        assert!(parse("pigeon").unwrap_err().contains("pigeon"));
    }
}

//! Questions of the laboratory to a process, and its answers. Each is a line of JSON. What cannot be done is answered by
//! `error TEXT`.

use std::fmt::{Display, Write as _};
use std::io::{self, BufRead, Write};
use std::time::Duration;

use rtorb::Orb;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contestants::whitebox::counts::Counts;
use crate::error::LabError;
use crate::processes::Process;

/// The question for the process's own [`Counts`], which every process understands.
pub(super) const COUNTS: &str = "counts";

/// Answers the questions on standard input until it ends.
pub(super) fn serve<Q: DeserializeOwned, A: Display>(
    answer: impl FnMut(Q) -> Result<A, String>,
) -> io::Result<()> {
    answer_lines(io::stdin().lock(), io::stdout(), answer)
}

/// It makes no heap call itself, once the first line was answered: a question does not show in the counts.
fn answer_lines<Q: DeserializeOwned, A: Display>(
    mut input: impl BufRead,
    mut output: impl Write,
    mut answer: impl FnMut(Q) -> Result<A, String>,
) -> io::Result<()> {
    let mut line = String::with_capacity(LINE_BYTES_USUAL);
    let mut text = String::with_capacity(LINE_BYTES_USUAL);
    loop {
        line.clear();
        text.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let counts = Counts::own();
        let question = line.trim_end();
        let answered = if question.trim_matches('"') == COUNTS {
            write!(text, "{counts}").map_err(|error| error.to_string())
        } else {
            serde_json::from_str(question)
                .map_err(|error| format!("not a question: {error}: {question:?}"))
                .and_then(&mut answer)
                .and_then(|answer| write!(text, "{answer}").map_err(|error| error.to_string()))
        };
        if let Err(error) = answered {
            text = format!("error {}", error.replace('\n', " "));
        }
        text.push('\n');
        output.write_all(text.as_bytes())?;
        output.flush()?;
    }
}

/// Serves an ORB, and answers questions in a thread of their own. Once these end, the process ends.
pub(super) fn serve_beside<Q: DeserializeOwned + 'static, A: Display>(
    orb: &Orb,
    ready: impl FnOnce(),
    answer: impl FnMut(Q) -> Result<A, String> + Send + 'static,
) -> Result<(), String> {
    let questions = move || {
        // An error means that the laboratory is gone, and then it is time to end too.
        let _ = serve(answer);
        std::process::exit(0);
    };
    rtorb_os::thread::spawn("questions", &Default::default(), questions)
        .map_err(|refused| refused.to_string())?;
    ready();
    orb.run().map_err(|error| error.to_string())
}

/// An answer.
pub(super) fn json(answer: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}

/// Asks a process, whose answer may take as long as `within`.
pub(super) fn ask<A: DeserializeOwned>(
    process: &mut Process,
    question: &impl Serialize,
    within: Duration,
) -> Result<A, LabError> {
    let failed = |process: &Process, what| LabError::process(process.name(), what);
    let line = json(question).map_err(|what| failed(process, what))?;
    let no_octets = |line: &str| match line.strip_prefix("error ") {
        Some(error) => Err(error.to_owned()),
        None => Ok(0),
    };
    let (line, _) = process.ask_for_bytes(&line, within, no_octets)?;
    serde_json::from_str(&line).map_err(|error| failed(process, format!("{error}: said {line:?}")))
}

const LINE_BYTES_USUAL: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::event_channel::{Sending, Sent};

    #[test]
    fn an_answer_is_a_line_that_is_read_back() {
        let sent = Sent {
            count: 1 << 40,
            elapsed_ns: 9,
        };
        let line = json(&sent).unwrap();
        assert!(!line.contains('\n') && !line.starts_with("error "));
        assert_eq!(serde_json::from_str::<Sent>(&line).unwrap(), sent);
        let sending = Sending::paced(u64::MAX, 7);
        let line = json(&sending).unwrap();
        assert_eq!(serde_json::from_str::<Sending>(&line).unwrap(), sending);
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
        assert_eq!(lines[..2], ["42", "error too few"]);
        assert!(lines[2].starts_with("error not a question: "));
        assert!(serde_json::from_str::<Counts>(lines[3]).is_ok());
    }
}

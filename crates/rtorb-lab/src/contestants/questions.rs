//! Questions of the laboratory to a process, and its answers. Each is a line of JSON. What cannot be done is answered by
//! `error TEXT`.

use std::io::{self, BufReader, Write};
use std::time::Duration;

use rtorb::Orb;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contestants::rates::answer_lines;
use crate::error::LabError;
use crate::processes::Process;

/// Answers the questions on standard input until it ends.
pub(super) fn serve<Q: DeserializeOwned>(
    mut answer: impl FnMut(Q) -> Result<String, String>,
) -> io::Result<()> {
    let input = BufReader::new(io::stdin());
    answer_lines(input, io::stdout(), |line, output| {
        let question = serde_json::from_str(line)
            .map_err(|error| format!("not a question: {error}: {line:?}"))?;
        writeln!(output, "{}", answer(question)?).map_err(|error| error.to_string())
    })
}

/// Serves an ORB, and answers questions in a thread of their own. Once these end, the process ends.
pub(super) fn serve_beside<Q: DeserializeOwned + 'static>(
    orb: &Orb,
    ready: impl FnOnce(),
    answer: impl FnMut(Q) -> Result<String, String> + Send + 'static,
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
    let (line, _) = process.ask_for_octets(&line, within, no_octets)?;
    serde_json::from_str(&line).map_err(|error| failed(process, format!("{error}: said {line:?}")))
}

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
}

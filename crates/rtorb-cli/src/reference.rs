//! REF on the command line, and the options of whatever calls an object.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use rtorb::rt::Priority;
use rtorb::{ExceptionKind, ObjectRef, Orb, OrbBuilder};
use rtorb_lab::inspect;

use crate::orb_options::{ClientChoices, ServerChoices, in_our_words};

/// How an object is called.
#[derive(Debug, Args)]
pub(crate) struct Calling {
    /// How long to wait for the connection, and for each answer: 2s, 500ms, 100us. 2 s unless this or the file says.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// The CORBA priority of the calls, 0 to 32767: of this thread, and as the reference says of connection, lane and
    /// servant. The host must allow it; without it, the calls have that of the thread as it is.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(0..))]
    priority: Option<i16>,
    #[command(flatten)]
    choices: ClientChoices,
}

impl Calling {
    /// How long an answer may take, as far as this command line says.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// An ORB that calls so; the calling thread has the priority from now on.
    pub(crate) fn orb(&self) -> anyhow::Result<Orb> {
        self.build(self.choices.apply(builder()).map_err(in_our_words)?)
    }

    /// The same with an ORB that is called as well, as chosen.
    pub(crate) fn serving_orb(&self, server: &ServerChoices) -> anyhow::Result<Orb> {
        let chosen = server.apply(&self.choices, builder());
        self.build(chosen.map_err(in_our_words)?)
    }

    fn build(&self, mut builder: OrbBuilder) -> anyhow::Result<Orb> {
        if let Some(timeout) = self.timeout {
            builder = builder
                .connect_timeout(timeout)
                .round_trip_timeout(Some(timeout));
        }
        let orb = builder.build().map_err(in_our_words)?;
        if let Some(number) = self.priority {
            set_priority(&orb, number)?;
        }
        Ok(orb)
    }
}

/// An ORB none of whose calls waits for ever.
pub(crate) fn builder() -> OrbBuilder {
    Orb::builder()
        .connect_timeout(TIMEOUT)
        .round_trip_timeout(Some(TIMEOUT))
}

fn set_priority(orb: &Orb, number: i16) -> anyhow::Result<()> {
    let set =
        Priority::new(number).and_then(|priority| orb.rt_current().set_the_priority(priority));
    set.map_err(|exception| match exception.kind {
        ExceptionKind::DataConversion => anyhow!(
            "CORBA priority {number} is none of this host's by its priority mapping: choose 0 to 99, or \
             --priority-mapping linear here and at the server"
        ),
        _ => anyhow!("calls cannot have CORBA priority {number}: {exception}"),
    })
}

/// The object that a REF means.
pub(crate) fn object(orb: &Orb, argument: &str) -> anyhow::Result<ObjectRef> {
    let text = inspect::reference_text(argument).map_err(|error| anyhow!(error))?;
    orb.string_to_object(&text)
        .map_err(|exception| anyhow!("{argument}: {exception}"))
}

/// Reads `2s`, `500ms`, `100us`, or a number of seconds such as `1.5`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 2s, 500ms or 100us");
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let seconds_each = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(number * seconds_each) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(wrong()),
    }
}

/// Unless somebody says otherwise: nothing waits for ever.
const TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "2m", "-1s", "0s", "1e400s", "NaN"] {
            assert!(duration(wrong).unwrap_err().contains("500ms"), "{wrong}");
        }
    }
}

//! REF on the command line, and the options of commands that call an object.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use rtorb::exception::local;
use rtorb::rt::Priority;
#[cfg(feature = "laboratory")]
use rtorb::{ConnectionStrategy, WaitStrategy};
use rtorb::{ExceptionKind, ObjectRef, Orb, OrbBuilder, SystemException};
use rtorb_dynamic::inspect::is_of_tao;
use rtorb_sched::text_file::shortened;

use crate::orb_options::{ClientOptions, ServerOptions, option_error, usage};
use crate::output::warn;

mod text;

pub(crate) use text::{is_ior, reference_text};

/// Options of calls to an object.
#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// Timeout of each call, connecting too: 2s, 500ms, 100us [default: 2s, or the configuration file's].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// CORBA priority of the calls, 0 to 32767. The calling thread has it, and the connection, lane and servant have it if the
    /// reference says so. The host must permit it [default: the priority of the calling thread].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(0..))]
    priority: Option<i16>,
    #[command(flatten)]
    choices: ClientOptions,
}

impl CallOptions {
    /// Returns the priority of the calls, if this command line has one.
    pub(crate) fn priority(&self) -> anyhow::Result<Option<Priority>> {
        let priority = self.priority.map(Priority::new).transpose();
        priority.map_err(|exception| anyhow!("--priority: {exception}"))
    }

    /// Builds the ORB, and sets the priority of the calling thread.
    pub(crate) fn orb(&self) -> anyhow::Result<Orb> {
        self.build(self.choices.apply(builder()))
    }

    /// Builds the ORB of a command whose calls have another default timeout, and sets the priority of the calling thread.
    #[cfg(feature = "laboratory")]
    pub(crate) fn orb_within(&self, timeout: Duration) -> anyhow::Result<Orb> {
        self.build(
            self.choices
                .apply(builder().round_trip_timeout(Some(timeout))),
        )
    }

    /// Builds an ORB that starts calls: its threads share connections, as the options choose.
    #[cfg(feature = "laboratory")]
    pub(crate) fn starting_orb(&self) -> anyhow::Result<Orb> {
        let shared = ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::LeaderFollowers,
        };
        let orb = self.build(self.choices.apply(builder().connection(shared)))?;
        let connection = orb.strategies().connection;
        if connection.wait() == WaitStrategy::Read {
            return Err(usage(format!(
                "calls in flight share a connection, which {connection} does not let them: choose --connection multiplexed or banded, \
                 with --wait leader_followers, reactor or connection_thread"
            )));
        }
        Ok(orb)
    }

    /// Builds an ORB that also serves, and sets the priority of the calling thread.
    pub(crate) fn serving_orb(&self, server: &ServerOptions) -> anyhow::Result<Orb> {
        self.build(server.apply(&self.choices, builder()))
    }

    /// Returns advice, if the priority of the calls has another meaning for the server of a reference.
    pub(crate) fn priority_advice(&self, object: &ObjectRef) -> Option<&'static str> {
        let is_other = !self.choices.maps_linearly();
        (self.priority.is_some() && is_other && is_of_tao(object.ior())).then_some(TAO_ADVICE)
    }

    fn build(&self, mut builder: OrbBuilder) -> anyhow::Result<Orb> {
        if let Some(timeout) = self.timeout {
            builder = builder
                .connect_timeout(timeout.clamp(CONNECT_TIMEOUT_MIN, CONNECT_TIMEOUT_MAX))
                .round_trip_timeout(Some(timeout));
        }
        let orb = builder.build().map_err(option_error)?;
        if let Some(number) = self.priority {
            set_priority(&orb, number)?;
        }
        Ok(orb)
    }
}

/// Returns a builder of an ORB whose calls all have a timeout.
pub(crate) fn builder() -> OrbBuilder {
    Orb::builder()
        .connect_timeout(TIMEOUT)
        .round_trip_timeout(Some(TIMEOUT))
}

fn set_priority(orb: &Orb, number: i16) -> anyhow::Result<()> {
    let set =
        Priority::new(number).and_then(|priority| orb.rt_current().set_the_priority(priority));
    set.map_err(|exception| match exception.kind {
        ExceptionKind::DataConversion => usage(format!(
            "the priority mapping has no CORBA priority {number}: choose 0 to 99 (0 to 98 with --priority-mapping continuous), or \
             --priority-mapping linear for client and server"
        )),
        _ => anyhow!("calls cannot have CORBA priority {number}: {exception}"),
    })
}

/// Returns the text of a REF. If it is wrapped, as a mail client does, says so.
pub(crate) fn text_of(argument: &str) -> anyhow::Result<String> {
    let found = reference_text(argument).map_err(usage)?;
    if found.was_wrapped {
        let name = shortened(argument);
        warn(format!(
            "left out the white space inside {name:?}: a mail client may have wrapped it"
        ));
    }
    Ok(found.text)
}

/// Returns the object of a REF.
pub(crate) fn object(orb: &Orb, argument: &str) -> anyhow::Result<ObjectRef> {
    let text = text_of(argument)?;
    orb.string_to_object(&text).map_err(|exception| {
        let said = format!("{}: {exception}", shortened(argument));
        if is_ior(&text) || is_malformed(&exception) {
            usage(said)
        } else {
            anyhow!(said)
        }
    })
}

/// Returns true if the text of a URL, or an option that it needs, is wrong, and false if its name cannot be resolved.
fn is_malformed(exception: &SystemException) -> bool {
    let ours = [
        local::UNREADABLE_FILE,
        local::REFERENCES_IN_CIRCLE,
        local::NO_INITIAL_REFERENCE,
    ];
    let is_ours =
        |one: &SystemException| (one.kind, one.minor) == (exception.kind, exception.minor);
    ours.iter().any(is_ours)
        || exception.kind == ExceptionKind::BadParam && MALFORMED.contains(&exception.minor)
}

/// Returns a reference to the object whose calls have that deadline, if there is one.
pub(crate) fn with_deadline(object: ObjectRef, deadline: Option<Duration>) -> ObjectRef {
    match deadline {
        Some(deadline) => object.with_deadline(deadline),
        None => object,
    }
}

/// Parses `2s`, `500ms`, `100us`, or a number of seconds such as `1.5`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write 2s, 500ms or 100us");
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

/// What to do about a priority for a server of TAO.
const TAO_ADVICE: &str = "the reference is of TAO, which maps CORBA priorities linearly to all priorities of its host: give \
    --priority-mapping linear, so that both sides mean the same by --priority";

/// The standard's minor codes of BAD_PARAM for malformed references.
const MALFORMED: std::ops::RangeInclusive<u32> = 0x4f4d_0007..=0x4f4d_0009;

/// The shortest and the longest timeout of opening a connection. The timeout of a call bounds it too.
const CONNECT_TIMEOUT_MIN: Duration = Duration::from_millis(1);
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(86_400);

/// The default timeout: no call waits for ever.
const TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_times_with_units() {
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "2m", "-1s", "0s", "1e400s", "NaN"] {
            assert!(duration(wrong).unwrap_err().contains("500ms"), "{wrong}");
        }
    }
}

//! Does an object answer, where, and how fast.

use std::time::Duration;

use rtorb::{ObjectRef, Orb, OrbBuilder};
use rtorb_os::clock::monotonic_ns;
use rtorb_results::statistics::{Recorder, Statistics};
use serde::Serialize;

/// What came of asking an object whether it exists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pong {
    /// Whether it answered every time, and that it exists.
    pub alive: bool,
    /// The endpoints in its reference, in the order in which they are tried.
    pub endpoints: Vec<String>,
    /// Its repository id, as far as its reference tells.
    pub type_id: String,
    /// How often it answered.
    pub answers: u64,
    /// The round trips in nanoseconds, if there were any; the first includes the connection.
    pub round_trip_ns: Option<Statistics>,
    /// What went wrong, and what to do about it.
    pub trouble: Option<String>,
}

/// How to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// How often.
    pub count: u64,
    /// How long to wait for a connection and for each answer.
    pub timeout: Duration,
}

/// An ORB for tools that only call: nothing waits longer than `timeout`.
///
/// # Errors
/// As [`rtorb::OrbBuilder::build`].
pub fn client_orb(timeout: Duration) -> Result<Orb, rtorb::OrbError> {
    client_orb_builder(timeout).build()
}

/// The builder of that ORB.
#[must_use]
pub fn client_orb_builder(timeout: Duration) -> OrbBuilder {
    Orb::builder()
        .connect_timeout(timeout)
        .round_trip_timeout(Some(timeout))
}

/// Asks an object as often as it is told, and stops at the first trouble.
#[must_use]
pub fn ping(object: &ObjectRef, asking: Asking) -> Pong {
    let mut recorder = Recorder::new();
    let mut trouble = None;
    for _ in 0..asking.count {
        let before_ns = monotonic_ns();
        let answer = object.non_existent();
        let after_ns = monotonic_ns();
        match answer {
            Ok(false) => recorder.record(after_ns - before_ns),
            Ok(true) => {
                trouble = Some(
                    "its server answers that it does not exist: get a new reference, for servers that restart make \
                     their objects anew"
                        .to_owned(),
                );
                break;
            }
            Err(exception) => {
                trouble = Some(exception.to_string());
                break;
            }
        }
    }
    Pong {
        alive: trouble.is_none() && recorder.count() > 0,
        endpoints: object.endpoints().map(ToString::to_string).collect(),
        type_id: object.type_id().to_owned(),
        answers: recorder.count(),
        round_trip_ns: (recorder.count() > 0).then(|| recorder.statistics()),
        trouble,
    }
}

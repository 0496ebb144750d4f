//! Whether an object replies, where, and how fast.

use rtorb::ObjectRef;
use rtorb_os::clock::monotonic_ns;
use rtorb_results::statistics::{Recorder, Statistics};
use serde::Serialize;

/// The replies of an object to the question whether it exists.
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

/// Asks an object `count` times whether it exists, and stops at the first trouble.
#[must_use]
pub fn ping(object: &ObjectRef, count: u64) -> Pong {
    let mut recorder = Recorder::new();
    let mut trouble = None;
    for _ in 0..count {
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

//! The client side of the ORBs under measurement: typed references, and threads with priorities.

use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{Interface, ObjectRef, Orb, OrbBuilder};

use crate::contestants::CALL_TIMEOUT;
use crate::contestants::real_time::as_this_thread;

/// An ORB whose calls end after a while, whatever their servers do.
pub(super) fn bounded(builder: OrbBuilder) -> OrbBuilder {
    builder
        .watchdog_thread(as_this_thread())
        .round_trip_timeout(Some(CALL_TIMEOUT))
}

/// Builds a client's ORB, and takes the references. They are those of the laboratory's own servers, so no object is asked for its
/// type.
///
/// # Errors
/// What the ORB said.
pub(super) fn open<I: Interface<Object = ObjectRef>>(
    builder: OrbBuilder,
    references: &[impl AsRef<str>],
) -> Result<Vec<I>, String> {
    let orb = bounded(builder)
        .build()
        .map_err(|error| error.to_string())?;
    typed(&orb, references)
}

/// The references, as this ORB has them.
///
/// # Errors
/// That one of them is none.
pub(super) fn typed<I: Interface<Object = ObjectRef>>(
    orb: &Orb,
    references: &[impl AsRef<str>],
) -> Result<Vec<I>, String> {
    let objects = references.iter().map(|reference| {
        let object = orb.string_to_object(reference.as_ref());
        object
            .map(I::unchecked_narrow)
            .map_err(|exception| exception.to_string())
    });
    objects.collect()
}

/// The configuration of a thread with this SCHED_FIFO priority, by which its calls have that CORBA priority. 0 leaves its scheduling.
pub(super) fn fifo(priority: u8) -> ThreadConfig {
    ThreadConfig {
        policy: (priority > 0).then_some(SchedPolicy::Fifo(priority)),
        ..ThreadConfig::default()
    }
}

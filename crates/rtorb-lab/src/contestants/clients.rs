//! The client side of the ORBs under measurement: typed references, and threads with priorities.

use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{Interface, ObjectRef, Orb, OrbBuilder};
use rtorb_os::thread::JoinHandle;

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
    references: &[&str],
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
    references: &[&str],
) -> Result<Vec<I>, String> {
    let object = |reference: &&str| {
        let object = orb.string_to_object(reference);
        object
            .map(I::unchecked_narrow)
            .map_err(|exception| exception.to_string())
    };
    references.iter().map(object).collect()
}

/// Threads of this SCHED_FIFO priority, by which their calls have that CORBA priority.
pub(super) fn fifo(priority: u8) -> ThreadConfig {
    ThreadConfig {
        policy: Some(SchedPolicy::Fifo(priority)),
        ..ThreadConfig::default()
    }
}

/// The result of a thread, once it has ended.
///
/// # Errors
/// Its error, or that it panicked.
pub(super) fn joined<T>(thread: JoinHandle<Option<Result<T, String>>>) -> Result<T, String> {
    let result = thread.join().ok().flatten();
    result.ok_or("a client panicked")?
}

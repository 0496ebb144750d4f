//! The deadline of the call that a thread serves or makes. Calls that the thread makes meanwhile inherit it.

use crate::clock::{known_utc_origin, monotonic_ns, utc_origin};
use core::cell::Cell;
use core::hint::cold_path;
use core::time::Duration;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::{Expiry, UtcTime};

thread_local! {
    static INHERITED_NS: Cell<u64> = const { Cell::new(NONE_NS) };
    /// The inherited deadline that requests do not contain, because it is a timeout; [`NONE_NS`] if there is none.
    static LOCAL_DEADLINE_NS: Cell<u64> = const { Cell::new(NONE_NS) };
    /// The deadline until which a forwarded call has waited for a servant of this ORB, until it follows; [`Deadline::NONE`] if it has not waited.
    static END_OF_WAIT: Cell<Deadline> = const { Cell::new(Deadline::NONE) };
}

/// No deadline.
pub(crate) const NONE_NS: u64 = u64::MAX;

/// Returns the deadline that calls of this thread inherit now.
#[inline]
pub(crate) fn inherited_ns() -> u64 {
    INHERITED_NS.get()
}

/// Lets the calls of a server's thread inherit the deadline of the request that it serves, until it [leaves](leave).
#[inline]
pub(crate) fn enter(deadline_ns: u64) {
    // `set` of the key itself is a call of 19 instructions.
    INHERITED_NS.with(|inherited_ns| inherited_ns.set(deadline_ns));
}

/// Ends the inheritance: the thread serves no request. A thread that serves is in no other call.
#[inline]
pub(crate) fn leave() {
    enter(NONE_NS);
}

/// The time in which calls of a thread inherit a deadline. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct DeadlineScope {
    around_ns: u64,
}

impl DeadlineScope {
    /// Lets the calls of this thread inherit the deadline, or an earlier one that they inherit already.
    #[inline]
    pub(crate) fn enter(deadline_ns: u64) -> Self {
        let around_ns = INHERITED_NS.get();
        INHERITED_NS.set(around_ns.min(deadline_ns));
        Self { around_ns }
    }

    /// Lets the calls of this thread inherit no deadline.
    fn leave() -> Self {
        Self {
            around_ns: INHERITED_NS.replace(NONE_NS),
        }
    }
}

impl Drop for DeadlineScope {
    #[inline]
    fn drop(&mut self) {
        INHERITED_NS.set(self.around_ns);
    }
}

/// Returns true if servers learn that deadline, which calls of this thread inherit now.
pub(crate) fn is_told(inherited_ns: u64) -> bool {
    inherited_ns != NONE_NS && inherited_ns != LOCAL_DEADLINE_NS.get()
}

/// Notes until when a call has waited for a servant of this ORB, which has forwarded it; [`Deadline::NONE`] if it has not waited.
#[cold]
pub(crate) fn note_end_of_wait(deadline: Deadline) {
    END_OF_WAIT.set(deadline);
}

/// Returns what was [noted](note_end_of_wait) of the call that the calling thread has just served.
pub(crate) fn take_end_of_wait() -> Deadline {
    END_OF_WAIT.replace(Deadline::NONE)
}

/// Runs an operation of several calls, which together have one timeout: they inherit its end, and no server learns it.
pub(crate) fn with_timeout<T>(end: Deadline, operation: impl FnOnce() -> T) -> T {
    struct LocalDeadline(u64);
    impl Drop for LocalDeadline {
        fn drop(&mut self) {
            LOCAL_DEADLINE_NS.set(self.0);
        }
    }
    let was_told = is_told(inherited_ns());
    let _inherited = DeadlineScope::enter(end.at_ns().unwrap_or(NONE_NS));
    let _outer = LocalDeadline(LOCAL_DEADLINE_NS.get());
    // The servers of a call that serves another one still learn its end.
    if !was_told {
        LOCAL_DEADLINE_NS.set(inherited_ns());
    }
    operation()
}

/// Runs an operation of several calls, which together have one deadline: how long after its beginning its result is useful. `None` adds
/// no deadline.
///
/// All calls that this thread makes meanwhile, of any object, have that deadline, or an earlier one of their own. A call after it fails
/// with TIMEOUT. Like [`ObjectRef::with_deadline`](crate::ObjectRef::with_deadline), the servers learn it.
///
/// A call that the calling thread serves itself ([`Collocation::Direct`](crate::Collocation::Direct)) is made in any case, and nothing
/// ends it. Its servant can ask for the time that is left, and the calls that the servant makes have the deadline.
///
/// ```no_run
/// # fn open(one: &rtorb::ObjectRef, other: &rtorb::ObjectRef) -> Result<(), rtorb::SystemException> {
/// use std::time::Duration;
/// rtorb::with_deadline(Duration::from_millis(20), || {
///     one.invoke("open", |_| Ok(()), |_| Ok(()))?;
///     other.invoke("open", |_| Ok(()), |_| Ok(()))
/// })
/// # }
/// ```
pub fn with_deadline<T>(deadline: impl Into<Option<Duration>>, operation: impl FnOnce() -> T) -> T {
    let end = Deadline::new(monotonic_ns(), deadline.into());
    let _inherited = DeadlineScope::enter(end.at_ns().unwrap_or(NONE_NS));
    operation()
}

/// Runs an operation whose calls inherit no deadline: neither that of the call which the thread serves, nor that of
/// [`with_deadline`]. Calls have deadlines of their own meanwhile.
///
/// It is for what a servant begins and does not wait for, and which may be done after the servant's own deadline: an event that it
/// pushes, a oneway with a later deadline.
///
/// ```no_run
/// # fn note(log: &rtorb::ObjectRef) -> Result<(), rtorb::SystemException> {
/// rtorb::without_deadline(|| log.invoke("note", |_| Ok(()), |_| Ok(())))
/// # }
/// ```
pub fn without_deadline<T>(operation: impl FnOnce() -> T) -> T {
    let _inherited = DeadlineScope::leave();
    operation()
}

/// The deadline of a request that has just arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestDeadline {
    pub(crate) at_ns: u64,
    pub(crate) arrived_ns: u64,
}

/// Lets the calls of a server's thread inherit the end time of a request that has just arrived, until it [leaves](leave). Returns false,
/// and does nothing, if the time has passed or is unusual, or the distance from UTC has to be measured: [`of_request`] decides then.
#[inline(always)]
pub(crate) fn enter_end_time(end: UtcTime) -> bool {
    let now_ns = monotonic_ns();
    if let Some(origin) = known_utc_origin(now_ns)
        && let Some(at_ns) = end.near_ns_after(origin)
        && at_ns > now_ns
    {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("deadline-uninherited") {
            return true;
        }
        enter(at_ns);
        return true;
    }
    cold_path();
    false
}

/// Returns the deadline of a request that has just arrived and expires so.
///
/// An end time counts with its inaccuracy, so that no request is refused that may be in time. Remaining time counts from the arrival.
#[inline]
pub(crate) fn of_request(expiry: Expiry) -> RequestDeadline {
    if expiry.is_never() {
        return RequestDeadline::NONE;
    }
    let now_ns = monotonic_ns();
    // Before the monotonic clock began is long ago.
    let end_ns = expiry
        .end
        .map(|end| end.latest_ns_after(utc_origin(now_ns)));
    let left_ns = expiry
        .remaining_ns
        .map(|left_ns| now_ns.saturating_add(left_ns));
    RequestDeadline {
        at_ns: end_ns.unwrap_or(NONE_NS).min(left_ns.unwrap_or(NONE_NS)),
        arrived_ns: now_ns,
    }
}

/// Returns when the request arrived that this thread serves and that expires so; `None` if it says no remaining time, which counts from then.
///
/// A thread that inherits an earlier deadline counts that for the remaining time: the request then seems to have arrived earlier.
pub(crate) fn arrival_of_served(expiry: Expiry) -> Option<u64> {
    let remaining_ns = expiry.remaining_ns?;
    Some(match inherited_ns() {
        NONE_NS => monotonic_ns(),
        at_ns => at_ns.saturating_sub(remaining_ns),
    })
}

impl RequestDeadline {
    /// That of a request that does not expire.
    pub(crate) const NONE: Self = Self {
        at_ns: NONE_NS,
        arrived_ns: 0,
    };

    /// True if it had passed when the request arrived.
    pub(crate) fn has_passed(self) -> bool {
        self.at_ns <= self.arrived_ns
    }
}

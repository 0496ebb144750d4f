//! How long the calls of a reference may take.

use super::{Inner, ObjectRef};
use crate::clock::monotonic_ns;
use crate::connection::ClientCore;
use crate::deadline::{self, DeadlineScope, NONE_NS};
use crate::exception::SystemException;
use crate::thread_state;
use crate::wait;
use rtorb_wire::connection::{Deadline, timeout_ns};
use std::time::{Duration, Instant};

/// The timeout of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    /// The ORB's timeout.
    OfOrb,
    /// The reference's own timeout; `None` for no timeout.
    Own(Option<Duration>),
    /// A deadline of each call, in nanoseconds, which the server learns.
    Deadline(u64),
    /// One deadline for all calls, which their servers learn.
    EndTime(Deadline),
}

/// The deadline of a call, and whether it may have passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTime {
    pub(super) deadline: Deadline,
    /// True if the call began earlier, so the deadline may have passed.
    pub(super) is_delayed: bool,
    /// The deadline that the server learns; [`NONE_NS`] if it learns none.
    pub(super) expiry_ns: u64,
}

impl CallTime {
    /// The time of a call on the calling thread, which has no deadline.
    pub(super) const DIRECT: Self = Self {
        deadline: Deadline::NONE,
        is_delayed: false,
        expiry_ns: NONE_NS,
    };

    /// Returns false for the time of a [direct](Self::DIRECT) call, whose beginning is not known.
    pub(super) fn has_clock(self) -> bool {
        self.deadline != Deadline::NONE
    }

    /// The time of a call that begins now, and whose server learns its deadline.
    #[inline(never)]
    fn by_deadline(deadline_ns: u64) -> Self {
        let deadline = Deadline::after(monotonic_ns(), deadline_ns);
        Self {
            deadline,
            is_delayed: false,
            expiry_ns: deadline.at_ns().unwrap_or(NONE_NS),
        }
    }
}

impl Timeout {
    /// Returns true if the application set a timeout, for the reference or for the ORB.
    pub(super) fn is_chosen(self, core: &ClientCore) -> bool {
        match self {
            Self::OfOrb => core.is_timeout_chosen,
            Self::Own(timeout) => timeout.is_some(),
            Self::Deadline(_) | Self::EndTime(_) => true,
        }
    }

    /// Returns the timeout of a call in nanoseconds, `u64::MAX` for none. Returns `None` if the call has a deadline that its server
    /// learns.
    #[inline]
    pub(super) fn of_calls(&self, core: &ClientCore) -> Option<u64> {
        match *self {
            Self::OfOrb => Some(core.round_trip_ns),
            Self::Own(timeout) => Some(timeout_ns(timeout)),
            Self::Deadline(_) | Self::EndTime(_) => None,
        }
    }

    /// Returns the time of a call that begins now and inherits a deadline, [`NONE_NS`] for none.
    #[inline(never)]
    fn call_time(self, core: &ClientCore, inherited_ns: u64) -> CallTime {
        let now_ns = monotonic_ns();
        let (own, has_begun, is_told) = match self {
            Self::OfOrb => (Deadline::after(now_ns, core.round_trip_ns), false, false),
            Self::Own(timeout) => (Deadline::new(now_ns, timeout), false, false),
            Self::Deadline(deadline_ns) => (Deadline::after(now_ns, deadline_ns), false, true),
            Self::EndTime(end) => (end, true, true),
        };
        let deadline = own.no_later_than(inherited_ns);
        let is_told = is_told || deadline::is_told(inherited_ns);
        let at_ns = deadline.at_ns().unwrap_or(NONE_NS);
        // What is left of an inherited deadline varies from call to call: the watchdog must not look as often as the least of it.
        let has_little_left = deadline != own && at_ns < now_ns.saturating_add(LITTLE_NS);
        CallTime {
            deadline,
            is_delayed: has_begun || has_little_left,
            expiry_ns: if is_told { at_ns } else { NONE_NS },
        }
    }
}

/// If less time is left of an inherited deadline, the watchdog is woken for the wait.
const LITTLE_NS: u64 = 1_000_000;

impl ObjectRef {
    /// Returns a reference to the same object with another timeout of each call (RelativeRoundtripTimeout); `None` for no
    /// timeout.
    ///
    /// The timeout bounds the whole call, from its beginning to the result: resolving the host name, connecting, further endpoints,
    /// forwards, sending, waiting, and sending again. See [`OrbBuilder::round_trip_timeout`](crate::OrbBuilder::round_trip_timeout).
    #[must_use]
    //= RT-CORBA 1.2 §Invocation Timeout
    //# A client may bound the time of a call, which then fails with TIMEOUT.
    pub fn with_timeout(&self, timeout: impl Into<Option<Duration>>) -> Self {
        Self::of(Inner {
            timeout: Timeout::Own(timeout.into()),
            ..self.inner.copy()
        })
    }

    /// Returns a reference to the same object whose calls have this deadline: how long after the beginning of a call its result is
    /// useful.
    ///
    /// Like a [timeout](Self::with_timeout), which it replaces, it bounds the whole call. In addition it travels with the request: the
    /// server does not begin a call that has expired, the servant can ask [how much time is left](crate::CurrentCall::remaining), and the
    /// calls that it makes inherit that. If a call of a servant has a deadline of its own too, the earlier one counts.
    ///
    /// ```no_run
    /// # fn close(valve: &rtorb::ObjectRef) -> Result<(), rtorb::SystemException> {
    /// use std::time::Duration;
    /// valve.with_deadline(Duration::from_millis(5)).invoke("close", |_| Ok(()), |_| Ok(()))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self::of(Inner {
            timeout: Timeout::Deadline(timeout_ns(Some(deadline))),
            ..self.inner.copy()
        })
    }

    /// Returns a reference to the same object whose calls all end by `end`: for several calls that are one step to the application,
    /// or a deadline that counts from an earlier release.
    ///
    /// A call after `end` fails with TIMEOUT. Like [`with_deadline`](Self::with_deadline), the servers learn it.
    ///
    /// ```no_run
    /// # fn open(one: &rtorb::ObjectRef, other: &rtorb::ObjectRef) -> Result<(), rtorb::SystemException> {
    /// use std::time::{Duration, Instant};
    /// let end = Instant::now() + Duration::from_millis(20);
    /// for valve in [one, other] {
    ///     valve.with_end_time(end).invoke("open", |_| Ok(()), |_| Ok(()))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_end_time(&self, end: Instant) -> Self {
        let left = end.saturating_duration_since(Instant::now());
        Self::of(Inner {
            timeout: Timeout::EndTime(Deadline::new(monotonic_ns(), Some(left))),
            ..self.inner.copy()
        })
    }

    /// Returns a reference to the same object with the timeout or the deadline of each call that the application set for `other`: for a
    /// reference that came in a reply, whose object is used as that one is. An end time is not copied: it belongs to one step.
    #[must_use]
    pub fn with_timeout_of(&self, other: &Self) -> Self {
        match other.inner.timeout {
            timeout @ (Timeout::Own(_) | Timeout::Deadline(_)) => Self::of(Inner {
                timeout,
                ..self.inner.copy()
            }),
            Timeout::OfOrb | Timeout::EndTime(_) => self.clone(),
        }
    }

    /// Runs an operation of several calls within the time of one call of this reference: its own timeout or the ORB's, which stays in this
    /// process, or its deadline or end time, which the servers learn.
    ///
    /// All calls that this thread makes meanwhile, of any object, end by then, or by an earlier deadline of their own. As with
    /// [`with_deadline`](crate::with_deadline), a call that the calling thread serves itself is made in any case.
    ///
    /// ```no_run
    /// # fn open(one: &rtorb::ObjectRef, other: &rtorb::ObjectRef) -> Result<(), rtorb::SystemException> {
    /// one.within_timeout(|| {
    ///     one.invoke("open", |_| Ok(()), |_| Ok(()))?;
    ///     other.invoke("open", |_| Ok(()), |_| Ok(()))
    /// })
    /// # }
    /// ```
    pub fn within_timeout<T>(&self, operation: impl FnOnce() -> T) -> T {
        if thread_state::has_special()
            && let Some(object) = self.with_thread_policies()
        {
            return object.within_timeout(operation);
        }
        let time = self.begin();
        if time.expiry_ns == NONE_NS {
            return deadline::with_timeout(time.deadline, operation);
        }
        let _inherited = DeadlineScope::enter(time.expiry_ns);
        operation()
    }

    /// Returns the timeout that the application set for calls through this reference: the reference's own or its deadline, the time left until its
    /// [end time](Self::with_end_time), or the ORB's. `None` if it set none, or no timeout.
    pub fn chosen_timeout(&self) -> Option<Duration> {
        let core = &self.inner.client.core;
        match self.inner.timeout {
            Timeout::OfOrb => core.chosen_timeout(),
            Timeout::Own(timeout) => timeout,
            Timeout::Deadline(deadline_ns) => Some(Duration::from_nanos(deadline_ns)),
            Timeout::EndTime(deadline) => {
                let left_ns = deadline.at_ns()?.saturating_sub(monotonic_ns());
                Some(Duration::from_nanos(left_ns))
            }
        }
    }

    /// Returns the time of a call that begins now.
    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    pub(super) fn begin(&self) -> CallTime {
        let (core, timeout) = (&self.inner.client.core, &self.inner.timeout);
        match (timeout.of_calls(core), deadline::inherited_ns()) {
            (Some(timeout_ns), NONE_NS) => CallTime {
                deadline: wait::deadline(timeout_ns),
                is_delayed: false,
                expiry_ns: NONE_NS,
            },
            (_, inherited_ns) => match *timeout {
                Timeout::Deadline(deadline_ns) if inherited_ns == NONE_NS => {
                    CallTime::by_deadline(deadline_ns)
                }
                timeout => timeout.call_time(core, inherited_ns),
            },
        }
    }

    /// Returns true if a deadline ends the call, its own or an inherited one, and not a timeout.
    pub(super) fn is_by_deadline(&self, end: Deadline) -> bool {
        let inherited_ns = deadline::inherited_ns();
        matches!(
            self.inner.timeout,
            Timeout::Deadline(_) | Timeout::EndTime(_)
        ) || deadline::is_told(inherited_ns) && end.at_ns() == Some(inherited_ns)
    }

    /// Returns the deadline of a oneway that waits for nothing, which its server learns; [`NONE_NS`] for none.
    ///
    /// # Errors
    /// TIMEOUT if it has passed.
    #[inline]
    pub(super) fn expiry_ns(&self) -> Result<u64, SystemException> {
        let (core, timeout) = (&self.inner.client.core, self.inner.timeout);
        match (timeout.of_calls(core), deadline::inherited_ns()) {
            (Some(_), NONE_NS) => Ok(NONE_NS),
            (_, inherited_ns) => {
                let time = timeout.call_time(core, inherited_ns);
                self.check_begun(time).map(|()| time.expiry_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;

    #[test]
    fn a_collocated_call_waits_as_long_as_its_reference_says() {
        let orb = Orb::builder().build().expect("an ORB");
        orb.root_poa().expect("it listens");
        let own = orb.endpoints()[0].to_string();
        let object = orb.string_to_object(&format!("corbaloc:{}/any", own.replace("://", ":")));
        let object = object.expect("a reference");
        let end_of_wait = |object: &ObjectRef| {
            assert!(object.inner.is_direct);
            let invocation = object.inner.oneway("any").expect("it has a route");
            invocation.end_of_wait().at_ns()
        };
        let unbounded = object.with_timeout(None);
        let begun_ns = monotonic_ns();
        let usual = end_of_wait(&object).expect("the timeout of an ORB");
        assert!(usual >= begun_ns + orb.core.client.round_trip_ns);
        assert_eq!(end_of_wait(&unbounded), None);
        let inherited = deadline::with_deadline(Duration::from_secs(1), || end_of_wait(&unbounded));
        assert!(inherited.is_some_and(|at_ns| at_ns < usual));
    }
}

//! How long the calls of a reference may take.

use super::{Inner, ObjectRef};
use crate::clock::monotonic_ns;
use crate::connection::ClientCore;
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
    /// One deadline for all calls.
    Until(Deadline),
}

/// The deadline of a call, and whether it may have passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTime {
    pub(super) deadline: Deadline,
    /// True if the call began earlier, so the deadline may have passed.
    pub(super) is_delayed: bool,
}

impl CallTime {
    /// The time of a call on the calling thread, which has no deadline.
    pub(super) const DIRECT: Self = Self {
        deadline: Deadline::NONE,
        is_delayed: false,
    };
}

impl Timeout {
    /// Returns true if the application set a timeout, for the reference or for the ORB.
    pub(super) fn is_chosen(self, core: &ClientCore) -> bool {
        match self {
            Self::OfOrb => core.is_timeout_chosen,
            Self::Own(timeout) => timeout.is_some(),
            Self::Until(_) => true,
        }
    }

    /// Returns the deadline of a call that begins now.
    #[inline]
    fn deadline(self, core: &ClientCore) -> Deadline {
        match self {
            Self::OfOrb => wait::deadline(core.round_trip_ns),
            Self::Own(timeout) => wait::deadline(timeout_ns(timeout)),
            Self::Until(deadline) => deadline,
        }
    }
}

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

    /// Returns a reference to the same object whose calls all end by `end` (RequestEndTime): for several calls that are one
    /// step to the application.
    ///
    /// A call after `end` fails with TIMEOUT.
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
        self.with_deadline(Deadline::new(monotonic_ns(), Some(left)))
    }

    /// Returns a reference to the same object whose calls all have this deadline.
    pub(crate) fn with_deadline(&self, deadline: Deadline) -> Self {
        Self::of(Inner {
            timeout: Timeout::Until(deadline),
            ..self.inner.copy()
        })
    }

    /// Returns the timeout that the application set for calls through this reference: the reference's own, the time left until its
    /// [end time](Self::with_end_time), or the ORB's. `None` if it set none, or no timeout.
    pub fn chosen_timeout(&self) -> Option<Duration> {
        let core = &self.inner.client.core;
        match self.inner.timeout {
            Timeout::OfOrb => core.chosen_timeout(),
            Timeout::Own(timeout) => timeout,
            Timeout::Until(deadline) => {
                let left_ns = deadline.at_ns()?.saturating_sub(monotonic_ns());
                Some(Duration::from_nanos(left_ns))
            }
        }
    }

    /// Returns the time of a call that begins now.
    pub(super) fn begin(&self) -> CallTime {
        CallTime {
            deadline: self.inner.timeout.deadline(&self.inner.client.core),
            is_delayed: matches!(self.inner.timeout, Timeout::Until(_)),
        }
    }
}

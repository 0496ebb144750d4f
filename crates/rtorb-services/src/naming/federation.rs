//! Names that go on in contexts of other servers.

use super::config::NamingConfig;
use super::exception::NamingException;
use crate::stubs::naming::cos_naming::naming_context::CannotProceed;
use crate::stubs::naming::cos_naming::{NameComponent, NamingContext};
use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb::ior::Ior;
use rtorb::{CompletionStatus, Orb, SystemException};
use std::time::Duration;

/// Calls to other servers: each takes a serving thread, so that they are bounded in number and in time. In nesting they are
/// bounded by the length of the name, of which every server takes a component.
#[derive(Debug)]
pub(super) struct Federation {
    orb: Orb,
    timeout: Duration,
    calls_max: usize,
    calls: AtomicUsize,
}

/// What another server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Asking again does no harm.
    Resolve,
    /// What may have happened must be told.
    Change,
}

impl Federation {
    pub(super) fn new(orb: &Orb, config: &NamingConfig) -> Self {
        Self {
            orb: orb.clone(),
            timeout: config.forward_timeout,
            calls_max: config.forwards_max,
            calls: AtomicUsize::new(0),
        }
    }

    /// Asks the context of another server for the rest of a name. When it cannot be reached, the client is told where the rest
    /// would have to be asked for.
    pub(super) fn forward<T, E>(
        &self,
        (context, rest): (&Ior, Vec<NameComponent>),
        question: Question,
        call: impl FnOnce(&NamingContext, &[NameComponent]) -> Result<T, E>,
    ) -> Result<T, NamingException>
    where
        NamingException: From<E>,
    {
        let there = self.context(context)?;
        let cannot_proceed = |rest| {
            NamingException::CannotProceed(CannotProceed {
                cxt: Some(there.clone()),
                rest_of_name: rest,
            })
        };
        let Some(_calling) = Calling::begin(self) else {
            return Err(cannot_proceed(rest));
        };
        match call(&there, &rest).map_err(NamingException::from) {
            Err(NamingException::System(exception)) if hides_nothing(&exception, question) => {
                Err(cannot_proceed(rest))
            }
            answer => answer,
        }
    }

    /// The context with that reference, whose calls take no longer than they may.
    pub(super) fn context(&self, ior: &Ior) -> Result<NamingContext, SystemException> {
        let object = self.orb.string_to_object(&ior.to_string())?;
        let bounded = object.with_round_trip_timeout(Some(self.timeout));
        Ok(NamingContext::unchecked_narrow(bounded))
    }
}

/// True if the client loses nothing when it is told to ask there itself.
fn hides_nothing(exception: &SystemException, question: Question) -> bool {
    question == Question::Resolve || exception.completed == CompletionStatus::No
}

/// A call in progress.
struct Calling<'f>(&'f Federation);

impl<'f> Calling<'f> {
    fn begin(federation: &'f Federation) -> Option<Self> {
        let more = |calls| (calls < federation.calls_max).then_some(calls + 1);
        let counted = federation
            .calls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.is_ok().then_some(Self(federation))
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

//! Calls to contexts of other servers, for names that continue there.

use super::config::NamingConfig;
use super::exception::NamingException;
use crate::stubs::naming::cos_naming::naming_context::CannotProceed;
use crate::stubs::naming::cos_naming::{NameComponent, NamingContext};
use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb::ior::Ior;
use rtorb::{CompletionStatus, Orb, SystemException};
use std::time::Duration;

/// Limits calls to other servers. Each call takes a serving thread, so their number and time are limited. The length of the name
/// limits their nesting: each server takes at least one component.
#[derive(Debug)]
pub(super) struct Federation {
    orb: Orb,
    timeout: Duration,
    calls_max: usize,
    calls: AtomicUsize,
}

/// The effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardKind {
    /// The call may be repeated.
    Read,
    /// The client must learn if it may have been done.
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

    /// Calls another server's context for the rest of a name. If it cannot be reached, the client gets CannotProceed with the
    /// context to call.
    pub(super) fn forward<T, E>(
        &self,
        context: &Ior,
        rest: Vec<NameComponent>,
        kind: ForwardKind,
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
        let Some(_permit) = CallPermit::begin(self) else {
            return Err(cannot_proceed(rest));
        };
        match call(&there, &rest).map_err(NamingException::from) {
            Err(NamingException::System(exception)) if hides_nothing(&exception, kind) => {
                Err(cannot_proceed(rest))
            }
            answer => answer,
        }
    }

    /// The context of a reference; its calls have a timeout.
    pub(super) fn context(&self, ior: &Ior) -> Result<NamingContext, SystemException> {
        let object = self.orb.string_to_object(&ior.to_string())?;
        Ok(NamingContext::unchecked_narrow(object).with_timeout(self.timeout))
    }
}

/// True if the client may safely call the other server itself.
fn hides_nothing(exception: &SystemException, kind: ForwardKind) -> bool {
    kind == ForwardKind::Read || exception.completed == CompletionStatus::No
}

/// Counts a call in progress.
struct CallPermit<'f>(&'f Federation);

impl<'f> CallPermit<'f> {
    fn begin(federation: &'f Federation) -> Option<Self> {
        let more = |calls| (calls < federation.calls_max).then_some(calls + 1);
        let counted = federation
            .calls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.is_ok().then_some(Self(federation))
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

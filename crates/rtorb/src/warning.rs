//! Warnings: failures after which an ORB continues.

use crate::trace::trace_event;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::Refused;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A failure after which an ORB continues. Its text is for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The host refused real-time scheduling, and best effort was chosen.
    #[error(
        "WITHOUT REAL-TIME SCHEDULING, as best effort: deadlines and the order of priorities are not kept. {0}"
    )]
    WithoutRealTime(Refused),
    /// The process has no file descriptor for a client.
    #[error(
        "no file descriptor is left for a new client: idle connections are closed, or the client is refused. Raise the limit of \
         open files (`ulimit -n`) or lower `connections_max`."
    )]
    NoFileDescriptor,
    /// The secure transport reports a client that it refused, or why it cannot accept any or use its files.
    #[error("{0}")]
    Refused(String),
    /// A service that runs on this ORB reports a failure.
    #[error("{0}")]
    Service(String),
}

/// The application's function for warnings.
pub(crate) type WarningHook = Arc<dyn Fn(&Warning) + Send + Sync>;

/// Reports the warnings of one ORB. Each kind of the ORB's own is reported once.
#[derive(Default)]
pub(crate) struct Warnings {
    hook: Option<WarningHook>,
    was_without_real_time: AtomicBool,
    was_without_descriptor: AtomicBool,
}

impl Warnings {
    pub(crate) fn new(hook: Option<WarningHook>) -> Self {
        Self {
            hook,
            ..Self::default()
        }
    }

    /// Reports the warning to `tracing` and to the application's function. A panic there ends only the function.
    #[cold]
    pub(crate) fn warn(&self, warning: &Warning) {
        let was_given = match warning {
            Warning::WithoutRealTime(_) => Some(&self.was_without_real_time),
            Warning::NoFileDescriptor => Some(&self.was_without_descriptor),
            Warning::Refused(_) | Warning::Service(_) => None,
        };
        if was_given.is_some_and(|given| given.swap(true, Ordering::Relaxed)) {
            return;
        }
        trace_event!(WARN, "{warning}");
        if let Some(hook) = &self.hook {
            // The panic hook has reported the panic.
            let _ = catch_unwind(AssertUnwindSafe(|| hook(warning)));
        }
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warnings")
            .field("has_hook", &self.hook.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;

    #[test]
    fn each_kind_is_given_once_and_a_panic_of_the_hook_ends_nothing() {
        let times = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&times);
        let warnings = Warnings::new(Some(Arc::new(move |warning: &Warning| {
            assert!(warning.to_string().contains("ulimit -n"), "{warning}");
            counted.fetch_add(1, Ordering::Relaxed);
            panic!("as it may");
        })));
        for _ in 0..3 {
            warnings.warn(&Warning::NoFileDescriptor);
        }
        assert_eq!(times.load(Ordering::Relaxed), 1);
        Warnings::default().warn(&Warning::NoFileDescriptor);
    }
}

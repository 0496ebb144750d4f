//! Best effort: continues with one warning if the host refuses real-time scheduling.

use crate::warning::{Warning, Warnings};
use rtorb_os::Refused;
use std::sync::Arc;

/// Decides what refused scheduling is: an error, or one warning.
#[derive(Debug)]
pub(crate) struct BestEffort {
    is_allowed: bool,
    warnings: Arc<Warnings>,
}

impl BestEffort {
    pub(crate) fn new(is_allowed: bool, warnings: Arc<Warnings>) -> Self {
        Self {
            is_allowed,
            warnings,
        }
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// Ignores a refusal if best effort is allowed; warns of the first one.
    ///
    /// # Errors
    /// The refusal, if best effort is not allowed.
    #[cold]
    pub(crate) fn pass(&self, refused: Refused) -> Result<(), Refused> {
        if !self.is_allowed {
            return Err(refused);
        }
        self.warnings.warn(&Warning::WithoutRealTime(refused));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use rtorb_os::Resource;
    use rtorb_os::sched::SchedPolicy;
    use rustix::io::Errno;

    const REFUSED: Refused = Refused {
        resource: Resource::Policy(SchedPolicy::Fifo(50)),
        errno: Errno::PERM,
    };

    #[test]
    fn a_refusal_is_an_error_unless_best_effort_was_chosen() {
        let best_effort = BestEffort::new(false, Arc::default());
        assert_eq!(best_effort.pass(REFUSED), Err(REFUSED));
    }

    #[test]
    fn best_effort_warns_once() {
        let times = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&times);
        let warnings = Warnings::new(Some(Arc::new(move |warning: &Warning| {
            assert_eq!(*warning, Warning::WithoutRealTime(REFUSED));
            counted.fetch_add(1, Ordering::Relaxed);
        })));
        let best_effort = BestEffort::new(true, Arc::new(warnings));
        for _ in 0..3 {
            assert_eq!(best_effort.pass(REFUSED), Ok(()));
        }
        assert_eq!(times.load(Ordering::Relaxed), 1);
    }
}

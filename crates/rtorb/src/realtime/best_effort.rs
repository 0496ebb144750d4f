//! Best effort: whether the ORB continues, with one warning, when the host refuses real-time scheduling.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::Refused;
use std::io::Write;
use std::sync::Arc;

/// The callback for threads that run without real-time scheduling.
pub(crate) type Tell = Arc<dyn Fn(&Refused) + Send + Sync>;

/// The policy for refused scheduling: an error, or one warning.
#[derive(Default)]
pub(crate) struct BestEffort {
    /// `None`: a refusal is an error.
    tell: Option<Tell>,
    told: AtomicBool,
}

impl BestEffort {
    pub(crate) fn new(tell: Option<Tell>) -> Self {
        Self {
            tell,
            told: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.tell.is_some()
    }

    /// Ignores a refusal if best effort is allowed; reports the first one.
    ///
    /// # Errors
    /// The refusal, if best effort is not allowed.
    #[cold]
    pub(crate) fn pass(&self, refused: Refused) -> Result<(), Refused> {
        let Some(tell) = &self.tell else {
            return Err(refused);
        };
        if !self.told.swap(true, Ordering::Relaxed) {
            tell(&refused);
        }
        Ok(())
    }
}

impl fmt::Debug for BestEffort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BestEffort")
            .field("is_allowed", &self.is_allowed())
            .field("told", &self.told)
            .finish()
    }
}

/// Writes the warning to standard error.
pub(crate) fn tell_on_standard_error(refused: &Refused) {
    let line = format!(
        "rtorb: WITHOUT REAL-TIME SCHEDULING, as best effort: deadlines and the order of priorities are not kept. {refused}\n"
    );
    // One write, so that lines of other threads do not mix with it. An error is ignored: there is nowhere else to report it.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;
    use rtorb_os::Resource;
    use rtorb_os::sched::SchedPolicy;
    use rustix::io::Errno;

    const REFUSED: Refused = Refused {
        resource: Resource::Policy(SchedPolicy::Fifo(50)),
        errno: Errno::PERM,
    };

    #[test]
    fn a_refusal_is_an_error_unless_best_effort_was_chosen() {
        assert_eq!(BestEffort::default().pass(REFUSED), Err(REFUSED));
    }

    #[test]
    fn best_effort_is_told_once() {
        let times = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&times);
        let best_effort = BestEffort::new(Some(Arc::new(move |refused: &Refused| {
            assert_eq!(*refused, REFUSED);
            counted.fetch_add(1, Ordering::Relaxed);
        })));
        for _ in 0..3 {
            assert_eq!(best_effort.pass(REFUSED), Ok(()));
        }
        assert_eq!(times.load(Ordering::Relaxed), 1);
    }
}

//! What the ORB does when the host refuses real-time scheduling: it stops, or says so once and goes on.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::Refused;
use std::io::Write;
use std::sync::Arc;

/// Whoever is told that threads run without real-time scheduling.
pub(crate) type Tell = Arc<dyn Fn(&Refused) + Send + Sync>;

/// Goes on after a refusal where the configuration allows it, never without a word.
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

    /// Lets a refusal pass where that is allowed; the first one is told.
    ///
    /// # Errors
    /// The refusal, where it is not.
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

/// Says it on standard error.
pub(crate) fn tell_on_standard_error(refused: &Refused) {
    let line = format!(
        "rtorb: WITHOUT REAL-TIME SCHEDULING, as best effort: deadlines and the order of priorities are not kept. {refused}\n"
    );
    // One write, so that no other thread's words come in between. Without standard error, nobody looks.
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

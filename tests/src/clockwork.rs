//! A servant whose operations have annotated times, and keep them or not as the caller wishes.

use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use rtorb::timing::{OperationCounts, TimingSide};
use rtorb::{Orb, SystemException};
use rtorb_os::clock::thread_cpu_ns;

use crate::running::until;
use crate::stubs::timing::{BaseServant, Broken, ClockworkFailError, ClockworkServant};

/// Executes, waits and fails.
#[derive(Default)]
pub struct Works {
    setting: AtomicI32,
    execution: Option<Box<Execution>>,
}

/// What `execute` does with its argument.
type Execution = dyn Fn(u32) -> Result<(), SystemException> + Send + Sync;

impl Works {
    /// A servant whose `execute` does something else than to keep the CPU for the given time.
    #[must_use]
    pub fn executing(
        execution: impl Fn(u32) -> Result<(), SystemException> + Send + Sync + 'static,
    ) -> Self {
        Self {
            execution: Some(Box::new(execution)),
            ..Self::default()
        }
    }
}

impl fmt::Debug for Works {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Works").finish_non_exhaustive()
    }
}

/// Keeps the CPU until the calling thread has had so much of it.
pub fn execute(time: Duration) {
    let end_ns = thread_cpu_ns() + time.as_nanos() as u64;
    while thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}

impl BaseServant for Works {
    fn plain(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn again(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl ClockworkServant for Works {
    fn execute(&self, us: u32) -> Result<(), SystemException> {
        if let Some(execution) = &self.execution {
            return execution(us);
        }
        execute(Duration::from_micros(us.into()));
        Ok(())
    }

    fn pause(&self, us: u32) -> Result<(), SystemException> {
        thread::sleep(Duration::from_micros(us.into()));
        Ok(())
    }

    fn answer_after(&self, us: u32) -> Result<u32, SystemException> {
        self.pause(us)?;
        Ok(us)
    }

    fn finish_after(&self, us: u32) -> Result<(), SystemException> {
        self.pause(us)
    }

    fn cube(&self, n: i32) -> Result<i32, SystemException> {
        Ok(n.wrapping_pow(3))
    }

    fn fail(&self, with_panic: bool) -> Result<(), ClockworkFailError> {
        assert!(!with_panic, "as the caller wishes");
        Err(ClockworkFailError::Broken(Broken {}))
    }

    fn setting(&self) -> Result<i32, SystemException> {
        Ok(self.setting.load(Ordering::Relaxed))
    }

    fn set_setting(&self, value: i32) -> Result<(), SystemException> {
        self.setting.store(value, Ordering::Relaxed);
        Ok(())
    }
}

/// What `orb` has counted of an operation of the Clockwork, once it is so many calls: a server counts behind its reply.
///
/// # Panics
///
/// It counts others, or nothing.
#[must_use]
pub fn counted(orb: &Orb, (operation, side): (&str, TimingSide), calls: u64) -> OperationCounts {
    let name = format!("Timing::Clockwork::{operation}");
    let counts = until(&format!("{calls} calls of {name}"), || {
        let mut all = orb.timing().into_iter();
        all.find(|counts| counts.operation.name() == name && counts.side == side)
            .filter(|counts| counts.calls >= calls)
    });
    assert_eq!(counts.calls, calls, "{name}");
    counts
}

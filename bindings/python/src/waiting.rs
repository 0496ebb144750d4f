//! Waits that hold no lock of the interpreter, and that a signal such as Ctrl-C ends.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rtorb::OrbError;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::{ThreadConfig, spawn};

use crate::exceptions::of_orb;

/// The longest time until a signal ends a wait.
pub(crate) const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// Runs something whose calls end within the time that is left.
pub(crate) fn within<T>(left: Option<Duration>, run: impl FnOnce() -> T) -> T {
    match left {
        Some(left) => rtorb::with_deadline(left, run),
        None => run(),
    }
}

/// Runs something without the interpreter's lock. Its calls end within the time that is left, in seconds.
///
/// The main thread lets a thread run it, and waits for that. If a signal ends the wait, the result is dropped when it comes.
pub(crate) fn bounded<T: Send + 'static>(
    py: Python<'_>,
    left: Option<f64>,
    run: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let left = left.map(|left| duration(left.max(0.0))).transpose()?;
    interruptible(py, move || within(left, run))
}

/// Runs something without the interpreter's lock: on the main thread, until a signal comes.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    run: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if !gets_signals(py)? {
        return Ok(py.detach(run));
    }
    let outcome = Arc::new(Outcome {
        result: Mutex::new(None),
        has_come: Condvar::new(),
    });
    let own = Arc::clone(&outcome);
    let run = move || own.put(run());
    let thread = py.detach(|| spawn("rtorb-wait", &ThreadConfig::default(), run));
    let thread = thread.map_err(|refused| of_orb(py, OrbError::Refused(refused)))?;
    loop {
        let has_ended = thread.is_finished();
        if let Some(result) = py.detach(|| outcome.take_within(SIGNAL_PERIOD)) {
            return Ok(result);
        }
        if has_ended {
            return Err(PyRuntimeError::new_err("the thread that waited failed"));
        }
        py.check_signals()?;
    }
}

/// The result that another thread makes.
struct Outcome<T> {
    result: Mutex<Option<T>>,
    has_come: Condvar,
}

impl<T> Outcome<T> {
    fn put(&self, result: T) {
        *self.result.lock() = Some(result);
        self.has_come.notify_all(&self.result);
    }

    /// Waits for the result, at most for that time.
    fn take_within(&self, time: Duration) -> Option<T> {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = monotonic_ns().saturating_add(time_ns);
        let mut result = self.result.lock();
        while result.is_none() && monotonic_ns() < until_ns {
            self.has_come.wait_until(&mut result, until_ns);
        }
        result.take()
    }
}

/// Returns true on the main thread of the interpreter, which handles signals. Any thread may have imported the package.
pub(crate) fn gets_signals(py: Python<'_>) -> PyResult<bool> {
    thread_local! {
        static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    if let Some(is_main) = IS_MAIN.get() {
        return Ok(is_main);
    }
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    let (main, own): (usize, usize) = (
        main.extract()?,
        threading.call_method0("get_ident")?.extract()?,
    );
    IS_MAIN.set(Some(own == main));
    Ok(own == main)
}

/// A time of seconds.
pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("{seconds} is no time: give seconds, such as 0.005"))
    })
}

//! References to objects, and calls of them.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rtorb::ObjectRef;
use rtorb_dynamic::{Failure, Request, Results};

use crate::exceptions::{raised, system};
use crate::from_python;
use crate::library::Operation;
use crate::orb::SharedOrb;
use crate::started::Started;
use crate::to_python::ToPython;

/// A reference to an object.
#[pyclass(frozen, module = "rtorb._native")]
pub(crate) struct Reference {
    pub(crate) object: ObjectRef,
    orb: Arc<SharedOrb>,
}

impl Reference {
    pub(crate) fn new(object: ObjectRef, orb: &Arc<SharedOrb>) -> Self {
        Self {
            object,
            orb: Arc::clone(orb),
        }
    }

    fn request(
        &self,
        operation: &Bound<'_, Operation>,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<Request> {
        let own = operation.get();
        let library = own.library.bind(operation.py());
        let inputs = from_python::arguments(library, &own.operation, arguments)?;
        let types = &library.get().types;
        let request = Request::new(&self.object, &own.operation, types, inputs);
        request.map_err(|exception| system(operation.py(), &exception))
    }

    /// Waits for the outcome of a call. On the main thread, a signal such as Ctrl-C ends the wait and with it the call.
    fn wait(
        &self,
        py: Python<'_>,
        request: &Request,
        left: Option<Duration>,
    ) -> PyResult<Result<Results, Failure>> {
        if !self.orb.starts_calls || !gets_signals(py)? {
            return Ok(py.detach(|| within(left, || request.invoke())));
        }
        let mut call = py.detach(|| within(left, || request.defer()));
        loop {
            let outcome = py.detach(|| call.wait_until(Instant::now() + SIGNAL_PERIOD));
            if let Some(outcome) = outcome {
                py.detach(|| drop(call));
                return Ok(outcome);
            }
            if let Err(interrupt) = py.check_signals() {
                py.detach(|| drop(call));
                return Err(interrupt);
            }
        }
    }
}

#[pymethods]
impl Reference {
    /// The reference as text: `IOR:` and hexadecimal digits.
    #[getter]
    fn ior(&self) -> String {
        self.object.to_string()
    }

    /// The repository id that the reference states; may be empty.
    #[getter]
    fn type_id(&self) -> &str {
        self.object.type_id()
    }

    /// The same object with a timeout of each call, in seconds; `None` for none.
    fn with_timeout(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Self> {
        let timeout = seconds.map(duration).transpose()?;
        let object = py.detach(|| self.object.with_timeout(timeout));
        Ok(Self::new(object, &self.orb))
    }

    /// Calls an operation, and waits for its results; `left` is the time left in seconds, if there is a bound.
    fn call<'py>(
        &self,
        operation: &Bound<'py, Operation>,
        arguments: &Bound<'py, PyTuple>,
        left: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (operation.py(), operation.get());
        let request = self.request(operation, arguments)?;
        let left = left.map(|left| duration(left.max(0.0))).transpose()?;
        let outcome = self.wait(py, &request, left)?;
        let library = own.library.bind(py);
        match outcome {
            Ok(results) => ToPython::new(library, &self.orb).results(&own.operation, &results),
            Err(failure) => Err(raised(library, &self.orb, &failure, Some(&request))),
        }
    }

    /// Starts a call whose results are awaited.
    fn start<'py>(
        &self,
        operation: &Bound<'py, Operation>,
        arguments: &Bound<'py, PyTuple>,
        left: Option<f64>,
    ) -> PyResult<Started> {
        let py = operation.py();
        let request = self.request(operation, arguments)?;
        let left = left.map(|left| duration(left.max(0.0))).transpose()?;
        let call = py.detach(|| {
            self.orb.read_replies()?;
            Ok(within(left, || request.defer()))
        });
        let call = call.map_err(|exception| system(py, &exception))?;
        Ok(Started::new(
            call,
            request,
            operation.clone().unbind(),
            &self.orb,
        ))
    }

    /// True if the object says that it has that interface.
    fn is_a(&self, py: Python<'_>, id: &str, left: Option<f64>) -> PyResult<bool> {
        let answer = bounded(py, left, || self.object.is_a(id))?;
        answer.map_err(|exception| system(py, &exception))
    }

    /// True if the server says that the object does not exist.
    fn non_existent(&self, py: Python<'_>, left: Option<f64>) -> PyResult<bool> {
        let answer = bounded(py, left, || self.object.non_existent())?;
        answer.map_err(|exception| system(py, &exception))
    }

    /// Opens the connection, so that the start of a call does not wait for one.
    fn connect(&self, py: Python<'_>, left: Option<f64>) -> PyResult<()> {
        let opened = bounded(py, left, || self.object.validate_connection())?;
        opened.map_err(|exception| system(py, &exception))
    }
}

/// Returns true on the main thread of the interpreter, which handles signals. Any thread may have imported the package.
fn gets_signals(py: Python<'_>) -> PyResult<bool> {
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

/// Runs something whose calls end within the time that is left.
fn within<T>(left: Option<Duration>, run: impl FnOnce() -> T) -> T {
    match left {
        Some(left) => rtorb::with_deadline(left, run),
        None => run(),
    }
}

/// Runs something without the interpreter. Its calls end within the time that is left, in seconds; signals do not end them.
pub(crate) fn bounded<T: Send>(
    py: Python<'_>,
    left: Option<f64>,
    run: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let left = left.map(|left| duration(left.max(0.0))).transpose()?;
    Ok(py.detach(|| within(left, run)))
}

/// A time of seconds.
fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("{seconds} is no time: give seconds, such as 0.005"))
    })
}

/// The longest time until a signal ends a wait.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

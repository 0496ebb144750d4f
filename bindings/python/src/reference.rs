//! References to objects, and calls of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rtorb::{ExceptionKind, ObjectRef};
use rtorb_dynamic::{Failure, Request, Results};

use crate::exceptions::{raised, system};
use crate::from_python;
use crate::library::Operation;
use crate::orb::SharedOrb;
use crate::started::Started;
use crate::to_python::ToPython;
use crate::waiting::{SIGNAL_PERIOD, bounded, duration, gets_signals, interruptible, within};

/// A reference to an object.
#[pyclass(frozen, module = "rtorb._native")]
pub(crate) struct Reference {
    pub(crate) object: ObjectRef,
    orb: Arc<SharedOrb>,
    /// True once a call has had a connection, and none has failed since: the start of the next does not wait for one.
    is_connected: AtomicBool,
}

impl Reference {
    pub(crate) fn new(object: ObjectRef, orb: &Arc<SharedOrb>) -> Self {
        Self {
            object,
            orb: Arc::clone(orb),
            is_connected: AtomicBool::new(false),
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
        let mut call = if self.is_connected.load(Ordering::Relaxed) {
            py.detach(|| within(left, || request.defer()))
        } else {
            let request = request.clone();
            interruptible(py, move || within(left, || request.defer()))?
        };
        loop {
            let outcome = py.detach(|| call.wait_until(Instant::now() + SIGNAL_PERIOD));
            if let Some(outcome) = outcome {
                py.detach(|| drop(call));
                let is_connected = !may_be_disconnected(&outcome);
                self.is_connected.store(is_connected, Ordering::Relaxed);
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
        let (object, id) = (self.object.clone(), id.to_owned());
        let answer = bounded(py, left, move || object.is_a(&id))?;
        answer.map_err(|exception| system(py, &exception))
    }

    /// True if the server says that the object does not exist.
    fn non_existent(&self, py: Python<'_>, left: Option<f64>) -> PyResult<bool> {
        let object = self.object.clone();
        let answer = bounded(py, left, move || object.non_existent())?;
        answer.map_err(|exception| system(py, &exception))
    }

    /// Opens the connection, so that the start of a call does not wait for one.
    fn connect(&self, py: Python<'_>, left: Option<f64>) -> PyResult<()> {
        let object = self.object.clone();
        let opened = bounded(py, left, move || object.validate_connection())?;
        opened.map_err(|exception| system(py, &exception))
    }
}

/// Returns true if the next call may have to open a connection.
fn may_be_disconnected(outcome: &Result<Results, Failure>) -> bool {
    let Err(Failure::System(exception)) = outcome else {
        return false;
    };
    matches!(
        exception.kind,
        ExceptionKind::CommFailure | ExceptionKind::Transient | ExceptionKind::Timeout
    )
}

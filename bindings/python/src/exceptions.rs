//! Exceptions of both worlds.

use std::sync::Arc;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rtorb::{CompletionStatus, ExceptionKind, OrbError, SystemException};
use rtorb_dynamic::search::SearchError;
use rtorb_dynamic::{Failure, Request};

use crate::library::Library;
use crate::orb::SharedOrb;
use crate::to_python::ToPython;

/// The Python module with the exceptions' classes.
const MODULE: &str = "rtorb._exceptions";

/// The Python exception for a failed call. `request` finds the argument that could not be sent.
pub(crate) fn raised(
    library: &Bound<'_, Library>,
    orb: &Arc<SharedOrb>,
    failure: &Failure,
    request: Option<&Request>,
) -> PyErr {
    let py = library.py();
    let made = match failure {
        Failure::User { type_code, members } => {
            let mut to_python = ToPython::new(library, orb);
            to_python
                .exception(type_code, members)
                .map(PyErr::from_value)
        }
        Failure::Undeclared { repository_id } => undeclared(py, repository_id),
        Failure::System(exception) => {
            let place = request.and_then(|request| request.unsent_place(exception));
            let message = match place {
                Some(place) => format!("{place}: {exception}"),
                None => exception.to_string(),
            };
            system_with(py, exception, &message)
        }
    };
    made.unwrap_or_else(|error| error)
}

/// The Python exception of a system exception.
pub(crate) fn system(py: Python<'_>, exception: &SystemException) -> PyErr {
    system_with(py, exception, &exception.to_string()).unwrap_or_else(|error| error)
}

fn system_with(py: Python<'_>, exception: &SystemException, message: &str) -> PyResult<PyErr> {
    let class = py.import("rtorb.CORBA")?.getattr(exception.kind.name())?;
    let completed = exception.completed as u32;
    let made = class.call1((exception.minor, completed, message))?;
    Ok(PyErr::from_value(made))
}

fn undeclared(py: Python<'_>, id: &str) -> PyResult<PyErr> {
    let class = py.import(MODULE)?.getattr("UndeclaredException")?;
    Ok(PyErr::from_value(class.call1((id,))?))
}

/// The Python exception for options that make no ORB.
pub(crate) fn of_orb(py: Python<'_>, error: OrbError) -> PyErr {
    match error {
        OrbError::System(exception) => system(py, &exception),
        OrbError::Refused(refused) => PyOSError::new_err(refused.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// The Python exception for an interface that was not found.
pub(crate) fn of_search(py: Python<'_>, error: SearchError) -> PyErr {
    match error {
        SearchError::Object(exception) => system(py, &exception),
        SearchError::Idl(error) => named(py, "IdlError", &error.to_string()),
        SearchError::NotFound { .. } => named(
            py,
            "InterfaceNotFound",
            &format!("{error}: connect(ref, idl=\"FILE.idl\", interface=\"Module::Name\")"),
        ),
        other => named(py, "InterfaceNotFound", &other.to_string()),
    }
}

/// An exception of the package, by the name of its class.
pub(crate) fn named(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = || py.import(MODULE)?.getattr(class)?.call1((message,));
    match made() {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}

/// The system exception that a Python exception is, if it is one.
pub(crate) fn system_of(value: &Bound<'_, PyAny>) -> PyResult<Option<SystemException>> {
    let class = value.py().import(MODULE)?.getattr("SystemException")?;
    if !value.is_instance(&class)? {
        return Ok(None);
    }
    let id: String = value.getattr("_rtorb_id")?.extract()?;
    let minor: u32 = value.getattr("minor")?.extract()?;
    let completed: u32 = value.getattr("completed")?.extract()?;
    let kind = ExceptionKind::from_repository_id(id.as_bytes());
    let completed = CompletionStatus::from_number(completed);
    Ok(Some(SystemException::new(kind, minor, completed)))
}

/// Reports an exception of a servant that its interface does not declare, with its traceback.
pub(crate) fn log(py: Python<'_>, operation: &str, error: &PyErr) {
    let logged = py.import("rtorb._objects").and_then(|module| {
        let arguments = PyTuple::new(
            py,
            [
                operation.into_pyobject(py)?.into_any(),
                error.value(py).clone().into_any(),
            ],
        )?;
        module.getattr("_log_servant_error")?.call1(arguments)
    });
    if let Err(error) = logged {
        error.print(py);
    }
}

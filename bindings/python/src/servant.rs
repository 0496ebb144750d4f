//! Python objects as servants.

use std::sync::Arc;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rtorb::any::Value;
use rtorb::{CompletionStatus, ExceptionKind, SystemException};
use rtorb_dynamic::{Failure, Operation, Results, Servant};

use crate::exceptions::{log, system_of};
use crate::from_python;
use crate::library::Library;
use crate::orb::SharedOrb;
use crate::to_python::ToPython;

/// A Python object that carries out the operations of an interface, by its methods and attributes.
pub(crate) struct PyServant {
    servant: Py<PyAny>,
    library: Py<Library>,
    orb: Arc<SharedOrb>,
}

impl PyServant {
    pub(crate) fn new(servant: Py<PyAny>, library: Py<Library>, orb: &Arc<SharedOrb>) -> Self {
        Self {
            servant,
            library,
            orb: Arc::clone(orb),
        }
    }

    fn carry_out(
        &self,
        py: Python<'_>,
        operation: &Operation,
        inputs: &[Value],
    ) -> PyResult<Results> {
        let library = self.library.bind(py);
        let mut to_python = ToPython::new(library, &self.orb);
        let mut arguments = Vec::with_capacity(inputs.len());
        for (parameter, value) in operation.inputs().zip(inputs) {
            arguments.push(to_python.whole(value, &parameter.type_code)?);
        }
        let servant = self.servant.bind(py);
        let result = match attribute(servant, &operation.name)? {
            Some(Access::Get(name)) => servant.getattr(name)?,
            Some(Access::Set(name)) => {
                for value in arguments {
                    servant.setattr(name.as_str(), value)?;
                }
                py.None().into_bound(py)
            }
            None => {
                let name = rtorb_idl::python::name(&operation.name);
                servant.call_method1(name, PyTuple::new(py, arguments)?)?
            }
        };
        from_python::results(library, operation, &result)
    }

    /// The exception that the client gets for a Python exception.
    fn failure(&self, py: Python<'_>, operation: &Operation, error: &PyErr) -> Failure {
        match self.declared(py, operation, error) {
            Ok(Some(failure)) => failure,
            Ok(None) => unexpected(py, operation, error),
            Err(error) => unexpected(py, operation, &error),
        }
    }

    fn declared(
        &self,
        py: Python<'_>,
        operation: &Operation,
        error: &PyErr,
    ) -> PyResult<Option<Failure>> {
        let value = error.value(py);
        if let Some(exception) = system_of(value)? {
            return Ok(Some(exception.into()));
        }
        let Ok(id) = value.get_type().getattr("_rtorb_id") else {
            return Ok(None);
        };
        let id: String = id.extract()?;
        let Some(code) = operation.exception(&id) else {
            return Ok(None);
        };
        let members = from_python::exception_members(self.library.bind(py), code, value.as_any())?;
        Ok(Some(Failure::User {
            type_code: code.clone(),
            members,
        }))
    }
}

impl Servant for PyServant {
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure> {
        let outcome = Python::try_attach(|py| {
            let outcome = self.carry_out(py, operation, &inputs);
            outcome.map_err(|error| self.failure(py, operation, &error))
        });
        // The interpreter has ended.
        outcome.unwrap_or_else(|| {
            let ended = SystemException::new(ExceptionKind::Transient, 0, CompletionStatus::No);
            Err(ended.into())
        })
    }
}

/// The use of an attribute, which has a name in Python.
enum Access {
    Get(String),
    Set(String),
}

/// The attribute that an operation reads or sets; `None` if the servant has a method for it.
fn attribute(servant: &Bound<'_, PyAny>, operation: &str) -> PyResult<Option<Access>> {
    let access = if let Some(name) = operation.strip_prefix("_get_") {
        Access::Get(rtorb_idl::python::name(name))
    } else if let Some(name) = operation.strip_prefix("_set_") {
        Access::Set(rtorb_idl::python::name(name))
    } else {
        return Ok(None);
    };
    Ok((!servant.hasattr(operation)?).then_some(access))
}

/// Logs an exception that the interface does not declare. The client gets UNKNOWN, or NO_IMPLEMENT for a method that is missing.
fn unexpected(py: Python<'_>, operation: &Operation, error: &PyErr) -> Failure {
    log(py, &operation.name, error);
    let is_missing = error.is_instance_of::<PyAttributeError>(py) && error.traceback(py).is_none();
    let kind = if is_missing {
        ExceptionKind::NoImplement
    } else {
        ExceptionKind::Unknown
    };
    SystemException::new(kind, 0, CompletionStatus::Maybe).into()
}

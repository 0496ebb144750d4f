//! Python objects as servants.

use std::sync::Arc;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rtorb::any::Value;
use rtorb::{CompletionStatus, ExceptionKind, SystemException};
use rtorb_dynamic::{
    DeferrableReply, DeferringServant, DynamicResponder, Failure, Operation, Results,
};

use crate::exceptions::{log, system_of};
use crate::from_python;
use crate::library::Library;
use crate::orb::SharedOrb;
use crate::responder::PyResponder;
use crate::to_python::ToPython;

/// A Python object that carries out the operations of an interface, by its methods and attributes.
pub(crate) struct PyServant {
    servant: Py<PyAny>,
    /// Begins the coroutines of the servant: `_Tasks` of `python/rtorb/_tasks.py`.
    tasks: Py<PyAny>,
    library: Py<Library>,
    orb: Arc<SharedOrb>,
}

/// What a method of a servant returned.
enum Returned {
    Results(Results),
    /// A coroutine, or another object to be awaited.
    Awaitable(Py<PyAny>),
}

impl PyServant {
    pub(crate) fn new(
        servant: Py<PyAny>,
        tasks: Py<PyAny>,
        library: Py<Library>,
        orb: &Arc<SharedOrb>,
    ) -> Self {
        Self {
            servant,
            tasks,
            library,
            orb: Arc::clone(orb),
        }
    }

    fn carry_out(
        &self,
        py: Python<'_>,
        operation: &Operation,
        inputs: &[Value],
    ) -> PyResult<Returned> {
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
        // As for `await`, the class has it.
        if result.get_type().hasattr("__await__")? {
            return Ok(Returned::Awaitable(result.unbind()));
        }
        let results = from_python::results(library, operation, &result)?;
        Ok(Returned::Results(results))
    }

    /// Begins a coroutine that answers the call, or returns the exception of a call that cannot be answered later.
    fn begin_task(
        &self,
        py: Python<'_>,
        operation: &Arc<Operation>,
        awaitable: Py<PyAny>,
        responder: Result<DynamicResponder, SystemException>,
    ) -> Option<Result<Results, Failure>> {
        let tasks = self.tasks.bind(py);
        let responder = match responder {
            Ok(responder) => responder,
            Err(exception) => {
                if let Err(error) = tasks.call_method1("close", (awaitable,)) {
                    log(py, &operation.name, &error);
                }
                return Some(Err(exception.into()));
            }
        };
        let library = self.library.clone_ref(py);
        let responder = PyResponder::new(responder, Arc::clone(operation), library);
        let begun = Bound::new(py, responder).and_then(|responder| {
            let begun = tasks.call_method1("begin", (awaitable, &responder));
            begun.or_else(|error| {
                responder
                    .get()
                    .raise(py, error.value(py).as_any())
                    .map(|()| py.None().into_bound(py))
            })
        });
        if let Err(error) = begun {
            log(py, &operation.name, &error);
        }
        None
    }
}

impl DeferringServant for PyServant {
    fn begin(
        &self,
        operation: &Arc<Operation>,
        inputs: Vec<Value>,
        reply: &mut DeferrableReply<'_, '_>,
    ) -> Option<Result<Results, Failure>> {
        let returned = Python::try_attach(|py| {
            let returned = self.carry_out(py, operation, &inputs);
            returned.map_err(|error| failure(self.library.bind(py), operation, &error))
        });
        let awaitable = match returned {
            Some(Ok(Returned::Results(results))) => return Some(Ok(results)),
            Some(Ok(Returned::Awaitable(awaitable))) => awaitable,
            Some(Err(failure)) => return Some(Err(failure)),
            None => return Some(Err(INTERPRETER_ENDED.into())),
        };
        // Without the interpreter's lock.
        let responder = reply.defer();
        let begun = Python::try_attach(|py| self.begin_task(py, operation, awaitable, responder));
        begun.unwrap_or_else(|| Some(Err(INTERPRETER_ENDED.into())))
    }
}

const INTERPRETER_ENDED: SystemException =
    SystemException::new(ExceptionKind::Transient, 0, CompletionStatus::No);

/// The exception that the client gets for a Python exception.
pub(crate) fn failure(
    library: &Bound<'_, Library>,
    operation: &Operation,
    error: &PyErr,
) -> Failure {
    let py = library.py();
    match declared(library, operation, error) {
        Ok(Some(failure)) => failure,
        Ok(None) => unexpected(py, operation, error),
        Err(error) => unexpected(py, operation, &error),
    }
}

fn declared(
    library: &Bound<'_, Library>,
    operation: &Operation,
    error: &PyErr,
) -> PyResult<Option<Failure>> {
    let value = error.value(library.py());
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
    let members = from_python::exception_members(library, code, value.as_any())?;
    Ok(Some(Failure::User {
        type_code: code.clone(),
        members,
    }))
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

//! Replies that coroutines of servants send.

use std::sync::Arc;
use std::task::Context;

use pyo3::prelude::*;
use rtorb_dynamic::{DynamicResponder, Failure, Operation, Results};
use rtorb_os::sync::Mutex;

use crate::from_python;
use crate::library::Library;
use crate::servant::failure;
use crate::started::News;

/// The reply to a call that a coroutine carries out. The client gets NO_RESPONSE if it is dropped.
#[pyclass(frozen, name = "Responder", module = "rtorb._native")]
pub(crate) struct PyResponder {
    responder: Mutex<Option<DynamicResponder>>,
    operation: Arc<Operation>,
    library: Py<Library>,
    expects_reply: bool,
}

impl PyResponder {
    pub(crate) fn new(
        responder: DynamicResponder,
        operation: Arc<Operation>,
        library: Py<Library>,
    ) -> Self {
        Self {
            expects_reply: !responder.is_cancelled(),
            responder: Mutex::new(Some(responder)),
            operation,
            library,
        }
    }

    fn respond(&self, py: Python<'_>, outcome: Result<Results, Failure>) {
        py.detach(|| {
            let responder = self.responder.lock().take();
            if let Some(responder) = responder {
                responder.respond(outcome);
            }
        });
    }
}

#[pymethods]
impl PyResponder {
    /// The name of the operation.
    #[getter]
    fn operation(&self) -> &str {
        &self.operation.name
    }

    /// True if a client waited for the reply when the call came.
    #[getter]
    fn expects_reply(&self) -> bool {
        self.expects_reply
    }

    /// The time until the deadline of the call, in seconds.
    fn remaining(&self) -> Option<f64> {
        let responder = self.responder.lock();
        Some(responder.as_ref()?.remaining()?.as_secs_f64())
    }

    /// Returns true if nobody waits for the reply any more. Otherwise `news` gets the number `id` when that is so.
    fn watch(&self, py: Python<'_>, news: &News, id: u64) -> bool {
        let waker = news.waker(id);
        py.detach(|| {
            let responder = self.responder.lock();
            let mut context = Context::from_waker(&waker);
            let is_over = |it: &DynamicResponder| it.poll_cancelled(&mut context).is_ready();
            responder.as_ref().is_none_or(is_over)
        })
    }

    /// Answers with the result of the operation.
    fn reply(&self, py: Python<'_>, result: &Bound<'_, PyAny>) {
        let library = self.library.bind(py);
        let results = from_python::results(library, &self.operation, result);
        let outcome = results.map_err(|error| failure(library, &self.operation, &error));
        self.respond(py, outcome);
    }

    /// Answers with an exception.
    #[pyo3(name = "raise_")]
    pub(crate) fn raise(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        let error = PyErr::from_value(error.clone());
        let failure = failure(self.library.bind(py), &self.operation, &error);
        self.respond(py, Err(failure));
        Ok(())
    }

    /// Answers with NO_RESPONSE, if somebody waits.
    fn abandon(&self, py: Python<'_>) {
        py.detach(|| drop(self.responder.lock().take()));
    }
}

impl Drop for PyResponder {
    fn drop(&mut self) {
        if let Some(responder) = self.responder.lock().take() {
            // The end of the interpreter drops nothing.
            let _ = Python::try_attach(|py| py.detach(|| drop(responder)));
        }
    }
}

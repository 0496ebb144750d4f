//! Calls that tasks of asyncio await.

use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rtorb_dynamic::{Deferred, Request};
use rtorb_os::sync::Mutex;

use crate::exceptions::raised;
use crate::library::Operation;
use crate::orb::SharedOrb;
use crate::to_python::ToPython;

/// A call that was started.
#[pyclass(frozen, module = "rtorb._native")]
pub(crate) struct Started {
    call: Mutex<Option<Deferred>>,
    request: Request,
    operation: Py<Operation>,
    orb: Arc<SharedOrb>,
}

impl Started {
    pub(crate) fn new(
        call: Deferred,
        request: Request,
        operation: Py<Operation>,
        orb: &Arc<SharedOrb>,
    ) -> Self {
        Self {
            call: Mutex::new(Some(call)),
            request,
            operation,
            orb: Arc::clone(orb),
        }
    }

    fn take(&self) -> Option<Deferred> {
        self.call.lock().take()
    }
}

#[pymethods]
impl Started {
    /// Returns a tuple with the result, or `None` if it is not there. Then `news` gets the number `id` when it is.
    fn poll<'py>(
        &self,
        py: Python<'py>,
        news: &News,
        id: u64,
    ) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let waker = news.waker(id);
        let polled = py.detach(|| {
            let mut call = self.call.lock();
            let inner = call.as_mut()?;
            let polled = Pin::new(inner).poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                *call = None;
            }
            Some(polled)
        });
        let own = self.operation.get();
        let library = own.library.bind(py);
        match polled {
            None => Err(PyRuntimeError::new_err("the result was taken")),
            Some(Poll::Pending) => Ok(None),
            Some(Poll::Ready(Ok(results))) => {
                let results = ToPython::new(library, &self.orb).results(&own.operation, &results);
                Ok(Some((results?,)))
            }
            Some(Poll::Ready(Err(failure))) => {
                Err(raised(library, &self.orb, &failure, Some(&self.request)))
            }
        }
    }

    /// Gives the call up.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(call) = self.take() {
            // The end of the interpreter drops nothing.
            let _ = Python::try_attach(|py| py.detach(|| drop(call)));
        }
    }
}

/// The numbers of the calls whose tasks can go on, for one event loop: its descriptor is readable when there are some.
///
/// The threads that read replies and end late calls never wait for the interpreter: they only add a number.
#[pyclass(frozen, module = "rtorb._native")]
pub(crate) struct News {
    list: Arc<NewsList>,
    receiver: UnixStream,
}

impl News {
    /// Wakes the task with that number.
    pub(crate) fn waker(&self, id: u64) -> Waker {
        let list = Arc::clone(&self.list);
        Waker::from(Arc::new(NewsOf { list, id }))
    }
}

struct NewsList {
    ids: Mutex<Vec<u64>>,
    sender: UnixStream,
}

#[pymethods]
impl News {
    #[new]
    fn new() -> PyResult<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let ids = Mutex::default();
        Ok(Self {
            list: Arc::new(NewsList { ids, sender }),
            receiver,
        })
    }

    fn fileno(&self) -> i32 {
        self.receiver.as_raw_fd()
    }

    /// The numbers that were added since the last time.
    fn take(&self) -> Vec<u64> {
        // The bytes go first: a number that comes between the two lines writes another byte, and the loop wakes again.
        let _ = (&self.receiver).read(&mut [0; 8]);
        std::mem::take(&mut *self.list.ids.lock())
    }
}

/// Tells an event loop that a task can go on.
struct NewsOf {
    list: Arc<NewsList>,
    id: u64,
}

impl Wake for NewsOf {
    fn wake(self: Arc<Self>) {
        let mut ids = self.list.ids.lock();
        ids.push(self.id);
        if ids.len() == 1 {
            // One byte is enough, because the loop takes all numbers at once. So few bytes never fill the socket; it is closed only
            // when no task waits.
            let _ = (&self.list.sender).write(&[0]);
        }
    }
}

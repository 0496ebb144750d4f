//! ORBs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rtorb::{ConnectionStrategy, ExceptionKind, ObjectRef, Orb, ReplyDriver, WaitStrategy};
use rtorb_dynamic::activate_deferring;
use rtorb_dynamic::search::Search;
use rtorb_os::Refused;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{ThreadConfig, spawn};

use crate::exceptions::{of_orb, system};
use crate::library::{Interface, Library};
use crate::reference::Reference;
use crate::servant::PyServant;
use crate::waiting::bounded;

/// An ORB, shared by its references and servants.
pub(crate) struct SharedOrb {
    pub(crate) orb: Orb,
    /// True if calls can be started: threads share connections.
    pub(crate) starts_calls: bool,
    reader: Mutex<Option<ReplyThread>>,
}

impl SharedOrb {
    /// Starts the thread that reads the replies of awaited calls, if it does not run.
    pub(crate) fn read_replies(&self) -> Result<(), rtorb::SystemException> {
        let mut reader = self.reader.lock();
        if reader.is_none() {
            let started = ReplyThread::start(self.orb.reply_driver()?);
            *reader = Some(started.map_err(|_| ExceptionKind::NoResources)?);
        }
        Ok(())
    }
}

/// A thread that reads replies, until this is dropped. It never needs the interpreter.
struct ReplyThread {
    ends: Arc<AtomicBool>,
    driver: ReplyDriver,
}

impl ReplyThread {
    fn start(driver: ReplyDriver) -> Result<Self, Refused> {
        let ends = Arc::new(AtomicBool::new(false));
        let (own_ends, own_driver) = (Arc::clone(&ends), driver.clone());
        let read = move || {
            while !own_ends.load(Ordering::Acquire) {
                own_driver.run_once(None);
            }
        };
        spawn("rtorb-replies", &ThreadConfig::default(), read)?;
        Ok(Self { ends, driver })
    }
}

impl Drop for ReplyThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        self.driver.waker().wake();
    }
}

/// An ORB.
#[pyclass(frozen, name = "Orb", module = "rtorb._native")]
pub(crate) struct NativeOrb {
    shared: Arc<SharedOrb>,
    remaining: Vec<String>,
    /// The objects that are served under a name.
    named: Mutex<Vec<NamedObject>>,
}

/// An object with a key that the application chose.
struct NamedObject {
    key: String,
    /// The reference with that key.
    ior: String,
    object: ObjectRef,
}

#[pymethods]
impl NativeOrb {
    /// An ORB with the `-ORB` options of a command line, whose first argument is an argument too.
    #[new]
    fn new(py: Python<'_>, arguments: Vec<String>) -> PyResult<Self> {
        let chooses = |it: &String| ["-ORBConnection", "-ORBPreset"].contains(&&**it);
        let mut builder = Orb::builder();
        if !arguments.iter().any(chooses) {
            // Threads and tasks share connections, and a signal can end a wait.
            builder = builder.connection(ConnectionStrategy::Multiplexed {
                wait: WaitStrategy::LeaderFollowers,
            });
        }
        let program = ["python".to_owned()];
        let builder = builder.security_provider(rtorb_tls::transport);
        let builder = builder.args(program.into_iter().chain(arguments));
        let remaining = builder.remaining_arguments().iter().skip(1).cloned();
        let remaining = remaining.collect();
        let orb = py.detach(|| builder.build());
        let orb = orb.map_err(|error| of_orb(py, error))?;
        let shared = SharedOrb {
            starts_calls: orb.strategies().connection.wait() != WaitStrategy::Read,
            reader: Mutex::new(None),
            orb,
        };
        Ok(Self {
            shared: Arc::new(shared),
            remaining,
            named: Mutex::new(Vec::new()),
        })
    }

    /// The arguments that are no options of the ORB.
    #[getter]
    fn remaining(&self) -> Vec<String> {
        self.remaining.clone()
    }

    /// The endpoints that the ORB listens on.
    #[getter]
    fn endpoints(&self, py: Python<'_>) -> Vec<String> {
        let endpoints = py.detach(|| self.shared.orb.endpoints());
        endpoints.iter().map(ToString::to_string).collect()
    }

    /// A reference from its text: IOR, corbaloc, corbaname or file URL.
    fn string_to_object(
        &self,
        py: Python<'_>,
        text: &str,
        left: Option<f64>,
    ) -> PyResult<Reference> {
        let (shared, text) = (Arc::clone(&self.shared), text.to_owned());
        let object = bounded(py, left, move || shared.orb.string_to_object(&text))?;
        let object = object.map_err(|error| system(py, &error))?;
        Ok(Reference::new(object, &self.shared))
    }

    /// An initial reference: `NameService`.
    fn resolve(&self, py: Python<'_>, name: &str, left: Option<f64>) -> PyResult<Reference> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        let object = bounded(py, left, move || {
            shared.orb.resolve_initial_references(&name)
        })?;
        let object = object.map_err(|error| system(py, &error))?;
        Ok(Reference::new(object, &self.shared))
    }

    /// Searches the interface of an object: returns a library and the interface's repository id.
    #[staticmethod]
    fn search(
        py: Python<'_>,
        reference: &Reference,
        files: Vec<PathBuf>,
        folders: Vec<PathBuf>,
        make_class: Py<PyAny>,
        left: Option<f64>,
    ) -> PyResult<(Library, String)> {
        let search = Search {
            files,
            folders,
            interface: None,
        };
        crate::library::search(py, search, &reference.object, make_class, left)
    }

    /// Serves an object. Requests wait until the ORB runs. `tasks` begins coroutines of the servant.
    fn serve(
        &self,
        py: Python<'_>,
        servant: Py<PyAny>,
        tasks: Py<PyAny>,
        interface: &Interface,
        key: Option<&str>,
    ) -> PyResult<Reference> {
        let library = &interface.library;
        let types = &library.get().types;
        let servant = PyServant::new(servant, tasks, library.clone_ref(py), &self.shared);
        let orb = &self.shared.orb;
        let interface = &interface.interface;
        let object = py.detach(|| {
            let root = orb.root_poa().map_err(rtorb::OrbError::from)?;
            let object = activate_deferring(&root, interface, types, servant);
            let object = object.map_err(rtorb::OrbError::from)?;
            root.manager().activate();
            Ok(object)
        });
        let object = object.map_err(|error| of_orb(py, error))?;
        let Some(key) = key else {
            return Ok(Reference::new(object, &self.shared));
        };
        let bound = py.detach(|| {
            let bound = orb.bind_object_key(key, &object);
            bound.inspect_err(|_| drop(orb.root_poa().map(|root| root.deactivate(&object))))
        });
        bound.map_err(|error| PyValueError::new_err(format!("name={key:?}: {error}")))?;
        // Clients must not see two references that they cannot know to be of one object.
        let ior = object.ior().with_object_key(key.as_bytes()).to_string();
        let reference = self.string_to_object(py, &ior, None)?;
        let key = key.to_owned();
        self.named.lock().push(NamedObject { key, ior, object });
        Ok(reference)
    }

    /// Ends the serving of an object that `serve` returned.
    fn withdraw(&self, py: Python<'_>, reference: &Reference) -> PyResult<()> {
        let orb = &self.shared.orb;
        let withdrawn = py.detach(|| {
            let mut named = self.named.lock();
            let ior = reference.object.to_string();
            let place = named.iter().position(|it| it.ior == ior);
            let own = place.map(|place| named.swap_remove(place));
            if let Some(own) = &own {
                orb.unbind_object_key(&own.key);
            }
            let object = own.as_ref().map_or(&reference.object, |own| &own.object);
            let root = orb.root_poa().map_err(rtorb::OrbError::from)?;
            root.deactivate(object).map_err(rtorb::OrbError::from)
        });
        withdrawn.map_err(|error| of_orb(py, error))
    }

    /// Serves requests until `shutdown`. Calls `ready` when clients find a server.
    fn run(&self, py: Python<'_>, ready: Py<PyAny>) -> PyResult<()> {
        let orb = &self.shared.orb;
        let served = py.detach(|| {
            orb.run_with(|| {
                // The interpreter ends: so does the ORB, without an error.
                let _ = Python::try_attach(|py| ready.call0(py));
                Ok::<(), rtorb::OrbError>(())
            })
        });
        served.map_err(|error| of_orb(py, error))
    }

    /// Ends the ORB. Does not wait.
    fn shutdown(&self, py: Python<'_>) {
        py.detach(|| self.shared.orb.shutdown());
    }

    /// Ends the ORB, and waits for its threads.
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        let destroyed = py.detach(|| self.shared.orb.destroy());
        destroyed.map_err(|error| system(py, &error))
    }
}

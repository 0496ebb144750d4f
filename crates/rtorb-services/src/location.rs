//! A locator of servers, as the implementation repository of other ORBs: a reference that has its address stays valid wherever the server of
//! the object runs, and the first request starts a server that does not run.
//!
//! A client calls an object by the address of the locator, such as `corbaloc::HOST:PORT/Plant/valve`. The locator finds the server of the
//! adapter `Plant`, starts it if it has to, and forwards the client to it (LOCATION_FORWARD). Later requests of the client go there without
//! the locator. When the server is gone, the client's ORB comes back to the locator.
//!
//! docs/how-to/service.md shows it.

use rtorb::exception::Phase;
use rtorb::ior::Ior;
use rtorb::poa::object_key;
use rtorb::skeleton::{ServedBy, ServerCall};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::url::ObjectUrl;
use rtorb::{
    ExceptionKind, Interface, Intervention, ObjectRef, Orb, Poa, PoaError, PoaPolicies,
    SystemException, without_deadline,
};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::current_affinity;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::spawn;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The servers of a locator. In a file, each is a `[[server]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocatorConfig {
    /// The servers, each with another name.
    #[serde(default, rename = "server")]
    pub servers: Vec<LocatedServer>,
}

/// A server that a locator finds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocatedServer {
    /// The name of the server in messages.
    pub name: String,
    /// The paths of its persistent adapters: the part of its object keys before their last `/`.
    #[serde(default)]
    pub adapters: Vec<String>,
    /// Its object keys without a `/`, which it has bound (`Orb::bind_object_key`).
    #[serde(default)]
    pub keys: Vec<String>,
    /// A reference to one of its objects, at the server's own address: a path or a `file:` URL of a file that the server writes, a
    /// `corbaname:` that it binds, or a `corbaloc:`. It is read again whenever the server is looked for.
    pub reference: String,
    /// The program that starts the server, and its arguments. It may be the server, or end when it has started it. Without it, the locator
    /// starts nothing.
    #[serde(default)]
    pub start: Vec<String>,
    /// How long the start may take until the server replies, in milliseconds: from 1 to 600,000. The default is 10,000.
    #[serde(default = "usual_start_timeout_ms")]
    pub start_timeout_ms: u64,
}

const fn usual_start_timeout_ms() -> u64 {
    10_000
}

/// What happens to a server. Its `Display` is a line for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocatorEvent {
    /// The program that starts the server runs.
    Starting {
        /// The name of the server.
        server: String,
        /// The process.
        process: u32,
    },
    /// The server replied after its start.
    Started {
        /// The name of the server.
        server: String,
    },
    /// Clients got TRANSIENT.
    NotFound {
        /// The name of the server.
        server: String,
        /// Why.
        reason: String,
    },
}

/// Why a locator cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocatorError {
    /// The text of the file, with the line.
    #[error("{0}")]
    Text(String),
    /// An entry.
    #[error("server {server:?}: {what}")]
    Server {
        /// The name of the server.
        server: String,
        /// What is wrong, and what is right.
        what: String,
    },
}

impl LocatorConfig {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`LocatorError::Text`] with the line.
    pub fn parse(text: &str) -> Result<Self, LocatorError> {
        toml::from_str(text).map_err(|error| LocatorError::Text(error.to_string()))
    }

    fn check(&self) -> Result<(), LocatorError> {
        let mut names = BTreeSet::new();
        for server in &self.servers {
            let what = if !names.insert(&server.name) {
                "has the name of another one"
            } else if server.adapters.is_empty() && server.keys.is_empty() {
                "has no object: write `adapters` or `keys`"
            } else if !(1..=START_TIMEOUT_MS_MAX).contains(&server.start_timeout_ms) {
                "`start_timeout_ms` is from 1 to 600000"
            } else if ObjectUrl::parse(&url(&server.reference)).is_err() {
                "`reference` is an absolute path, or a file:, corbaname:, corbaloc: or IOR:"
            } else {
                continue;
            };
            return Err(wrong(&server.name, what));
        }
        Ok(())
    }
}

/// Forwards the clients of `orb` to the servers from now on. `tell` gets what happens, on the thread that serves the request.
///
/// A request for a server that runs costs a call of the server (LocateRequest). A server that takes the connection, and does not reply within a
/// second or has no room for one more client, is not started again.
///
/// A thread that serves a request for a server that is being started waits until it replies. Clients of one server wait together: it is looked
/// for, and started, by one of them at a time. If it is not found, they get TRANSIENT. Two starts of a server begin at least a second apart.
///
/// Servers that were started go on when the locator ends.
///
/// # Errors
/// [`LocatorError`] for a wrong entry, and for an adapter or a key that two servers have.
pub fn serve(
    orb: &Orb,
    config: &LocatorConfig,
    tell: impl Fn(LocatorEvent) + Send + Sync + 'static,
) -> Result<(), LocatorError> {
    config.check()?;
    let tell: Tell = Arc::new(tell);
    let mut by_key = BTreeMap::new();
    for entry in &config.servers {
        let server = Arc::new(Server::new(orb, entry, &tell));
        for path in &entry.adapters {
            let of_adapter = Arc::clone(&server);
            let prefix = path.clone();
            let locate = move |id: &[u8]| of_adapter.locate(&object_key(&prefix, id));
            let placed = adapter(orb, path)
                .and_then(|it| it.set_servant_locator::<Located, Nobody, _>(locate));
            placed.map_err(|error| wrong(&entry.name, format!("adapter {path:?}: {error}")))?;
        }
        for key in &entry.keys {
            if by_key.insert(key.clone(), Arc::clone(&server)).is_some() {
                return Err(wrong(&entry.name, format!("the key {key:?} stands twice")));
            }
        }
    }
    serve_keys(orb, by_key)
}

/// Forwards the clients of bound keys.
fn serve_keys(orb: &Orb, servers: BTreeMap<String, Arc<Server>>) -> Result<(), LocatorError> {
    if servers.is_empty() {
        return Ok(());
    }
    let keys = servers.iter();
    let keys: Vec<(String, String)> = keys
        .map(|(key, server)| (key.clone(), server.name.clone()))
        .collect();
    let locate = move |id: &[u8]| {
        let key = std::str::from_utf8(id).ok();
        let server = key.and_then(|key| servers.get(key)).ok_or_else(gone)?;
        server.locate(id)
    };
    let poa = adapter(orb, KEYS).and_then(|poa| {
        poa.set_servant_locator::<Located, Nobody, _>(locate)?;
        Ok(poa)
    });
    let poa = poa.map_err(|error| wrong(&keys[0].1, error))?;
    for (key, server) in &keys {
        let located: Result<Located, _> = poa.create_reference_with_id(key);
        let located = located.map_err(|error| wrong(server, error))?;
        let bound = orb.bind_object_key(key, located.as_object());
        bound.map_err(|error| wrong(server, format!("key {key:?}: {error}")))?;
    }
    Ok(())
}

fn wrong(server: &str, what: impl fmt::Display) -> LocatorError {
    LocatorError::Server {
        server: server.to_owned(),
        what: what.to_string(),
    }
}

/// The URL of a reference.
fn url(reference: &str) -> String {
    if reference.starts_with('/') {
        format!("file://{}", reference.replace('%', "%25"))
    } else {
        reference.to_owned()
    }
}

/// Returns the persistent adapter with that path.
fn adapter(orb: &Orb, path: &str) -> Result<Poa, PoaError> {
    let mut poa = orb.root_poa()?;
    for name in path.split('/') {
        poa = match poa.find_poa(name) {
            Err(PoaError::AdapterNonExistent) => poa.create_poa(name, PoaPolicies::PERSISTENT)?,
            found => found?,
        };
    }
    Ok(poa)
}

fn gone() -> SystemException {
    SystemException::omg(ExceptionKind::ObjectNotExist, 1)
}

type Tell = Arc<dyn Fn(LocatorEvent) + Send + Sync>;

/// A server and what is known of it.
struct Server {
    orb: Orb,
    name: String,
    reference: String,
    start: Vec<String>,
    start_timeout_ns: u64,
    tell: Tell,
    /// The CPUs of the thread that made the locator, and of what it starts.
    cpus: Vec<usize>,
    state: Mutex<State>,
    /// Signalled at the end of each look.
    looked: Condvar,
}

#[derive(Debug)]
struct State {
    is_looking: bool,
    /// The number of looks that have ended, and what the last one found.
    looks: u64,
    found: Result<Ior, String>,
    /// The program that started the server, unless a thread looks.
    process: Option<Child>,
    /// The server is not started before.
    rests_until_ns: u64,
}

/// Why a server was not found.
struct Missing {
    exception: SystemException,
    /// True if it certainly does not serve at its reference.
    is_certain: bool,
}

/// A thread's look for a server. When this is dropped, others have its result.
struct Look<'s> {
    server: &'s Server,
    found: Result<Ior, String>,
    process: Option<Child>,
    rests_until_ns: u64,
}

impl Server {
    fn new(orb: &Orb, entry: &LocatedServer, tell: &Tell) -> Self {
        Self {
            orb: orb.clone(),
            name: entry.name.clone(),
            reference: url(&entry.reference),
            start: entry.start.clone(),
            start_timeout_ns: entry.start_timeout_ms * 1_000_000,
            tell: Arc::clone(tell),
            cpus: current_affinity(),
            state: Mutex::new(State {
                is_looking: false,
                looks: 0,
                found: Err(String::new()),
                process: None,
                rests_until_ns: 0,
            }),
            looked: Condvar::new(),
        }
    }

    /// Forwards a client of the object with that key to the server.
    fn locate(&self, key: &[u8]) -> Result<Nobody, Intervention> {
        match self.find() {
            // The type is that of another object.
            Ok(ior) => Err(Intervention::Forward(Ior {
                type_id: String::new(),
                ..ior.with_object_key(key)
            })),
            Err(reason) => {
                let exception = SystemException::from(ExceptionKind::Transient);
                Err(exception.with_detail(reason).into())
            }
        }
    }

    /// Returns a reference to an object of the server, as this thread finds it, or another one that looks for it already.
    fn find(&self) -> Result<Ior, String> {
        let mut state = self.state.lock();
        if state.is_looking {
            let looks = state.looks;
            let until_ns = monotonic_ns() + self.start_timeout_ns + LOOK_NS;
            while state.looks == looks {
                if !self.looked.wait_until(&mut state, until_ns) {
                    return Err("it is being looked for".to_owned());
                }
            }
            return state.found.clone();
        }
        state.is_looking = true;
        let mut look = Look {
            server: self,
            found: Err("the look for it ended".to_owned()),
            process: state.process.take(),
            rests_until_ns: state.rests_until_ns,
        };
        drop(state);
        // Others wait for it too: the deadline of this call does not end it.
        look.found = without_deadline(|| look.find_or_start());
        look.found.clone()
    }

    /// Asks the server whether it has the object of its reference.
    fn probe(&self) -> Result<Ior, Missing> {
        let object = self.orb.string_to_object(&self.reference);
        let object = object.map_err(|exception| Missing {
            // The file is not there, or the name is not bound. A naming service that does not reply says nothing of the server.
            is_certain: matches!(
                exception.kind,
                ExceptionKind::BadParam | ExceptionKind::InvObjref
            ),
            exception,
        })?;
        let object = object.with_timeout(PROBE_TIMEOUT);
        object.validate_connection().map_err(|exception| Missing {
            is_certain: !is_taken(&exception),
            exception,
        })?;
        Ok(object.ior().clone())
    }

    /// Returns true once the ORB of the locator is shut down.
    fn has_ended(&self) -> bool {
        self.orb.root_poa().is_err()
    }
}

impl Look<'_> {
    fn find_or_start(&mut self) -> Result<Ior, String> {
        // The system keeps a process that has ended until somebody has looked at it.
        self.is_running();
        let server = self.server;
        let found = match server.probe() {
            Ok(ior) => return Ok(ior),
            Err(missing) if missing.is_certain && !server.start.is_empty() => self.start(),
            Err(missing) => Err(missing.exception.to_string()),
        };
        found.inspect_err(|reason| {
            (server.tell)(LocatorEvent::NotFound {
                server: server.name.clone(),
                reason: reason.clone(),
            });
        })
    }

    /// Waits until the server replies, and starts it once the program of the last start has ended.
    fn start(&mut self) -> Result<Ior, String> {
        let server = self.server;
        let mut until_ns = monotonic_ns() + server.start_timeout_ns;
        let mut has_started = false;
        loop {
            if !has_started && !self.is_running() {
                sleep_until(self.rests_until_ns);
                if server.has_ended() {
                    return Err("the locator ends".to_owned());
                }
                self.rests_until_ns = monotonic_ns() + REST_NS;
                self.spawn()?;
                has_started = true;
                until_ns = monotonic_ns() + server.start_timeout_ns;
            }
            sleep_until(monotonic_ns() + PROBE_INTERVAL_NS);
            // Before the probe: a program that ends may have started the server.
            let failed = self.failure().filter(|_| has_started);
            let missing = match server.probe() {
                Ok(ior) => {
                    (server.tell)(LocatorEvent::Started {
                        server: server.name.clone(),
                    });
                    return Ok(ior);
                }
                Err(missing) => missing.exception,
            };
            if let Some(status) = failed {
                return Err(format!("{:?} ended with {status}", server.start[0]));
            }
            if server.has_ended() {
                return Err("the locator ends".to_owned());
            }
            if monotonic_ns() >= until_ns {
                return Err(format!("it was started and does not reply: {missing}"));
            }
        }
    }

    fn spawn(&mut self) -> Result<(), String> {
        let server = self.server;
        let (program, arguments) = server.start.split_first().ok_or("nothing starts it")?;
        let mut command = Command::new(program);
        // Signals to the terminal of the locator do not reach it.
        command
            .args(arguments)
            .stdin(Stdio::null())
            .process_group(0);
        // The process does not inherit the real-time priority and the CPU of the thread that serves the request.
        let ordinary = ThreadConfig {
            policy: Some(SchedPolicy::Other),
            affinity: server.cpus.clone(),
            ..ThreadConfig::default()
        };
        let thread = spawn("rtorb-start", &ordinary, move || command.spawn());
        let thread = thread.map_err(|refused| refused.to_string())?;
        let child = thread.join().ok().flatten().ok_or("its start panicked")?;
        let child = child.map_err(|error| format!("{program:?} cannot be run: {error}"))?;
        (server.tell)(LocatorEvent::Starting {
            server: server.name.clone(),
            process: child.id(),
        });
        self.process = Some(child);
        Ok(())
    }

    fn is_running(&mut self) -> bool {
        let process = self.process.as_mut();
        process.is_some_and(|it| matches!(it.try_wait(), Ok(None)))
    }

    /// The status of the program if it has failed.
    fn failure(&mut self) -> Option<ExitStatus> {
        let ended = self.process.as_mut()?.try_wait().ok().flatten();
        ended.filter(|status| !status.success())
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut state = self.server.state.lock();
        state.is_looking = false;
        state.looks += 1;
        state.found = self.found.clone();
        state.process = self.process.take();
        state.rests_until_ns = self.rests_until_ns;
        self.server.looked.notify_all(&self.server.state);
    }
}

impl fmt::Display for LocatorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting { server, process } => {
                write!(f, "{server}: being started by process {process}")
            }
            Self::Started { server } => write!(f, "{server}: started"),
            Self::NotFound { server, reason } => write!(f, "{server}: not found: {reason}"),
        }
    }
}

/// True if a server has taken the connection: it hangs, or has no room for one more client.
fn is_taken(exception: &SystemException) -> bool {
    let phase = exception.cause.as_ref().map(|cause| cause.phase);
    match exception.kind {
        ExceptionKind::Timeout => true,
        ExceptionKind::Transient => matches!(
            phase,
            Some(Phase::Send | Phase::AwaitReply | Phase::AwaitUnserved)
        ),
        _ => false,
    }
}

/// A reference to an object of a server.
#[derive(Clone)]
struct Located(ObjectRef);

impl Interface for Located {
    type Object = ObjectRef;
    const REPOSITORY_ID: &'static str = "IDL:omg.org/CORBA/Object:1.0";
    const ANCESTORS: &'static [&'static str] = &[];

    fn unchecked_narrow(object: ObjectRef) -> Self {
        Self(object)
    }

    fn as_object(&self) -> &ObjectRef {
        &self.0
    }
}

/// The type of a servant that never exists: every object is in another server.
enum Nobody {}

impl ServedBy<Nobody> for Located {
    /// Any operation: the locator does not know the interface.
    fn find_operation(_: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn dispatch(servant: &Nobody, _: usize, _: &mut ServerCall<'_>) -> Result<(), SystemException> {
        match *servant {}
    }
}

/// The adapter of bound keys.
const KEYS: &str = "rtorb-locator";
const START_TIMEOUT_MS_MAX: u64 = 600_000;
/// For a server that runs on a host that does, and is busy.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_INTERVAL_NS: u64 = 50_000_000;
/// The longest look but for the start: names are looked up within the timeout of the ORB.
const LOOK_NS: u64 = 30_000_000_000;
/// The least time between the beginnings of two starts.
const REST_NS: u64 = 1_000_000_000;

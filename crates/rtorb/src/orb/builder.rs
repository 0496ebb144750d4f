//! The builder of an ORB: all options are set here, before the ORB exists.

use super::settings::{Settings, check_bands, check_lanes, check_protocols};
use super::shutdown_signal::ShutdownSignal;
use super::{Orb, OrbCore, config_file, options};
use crate::connection::{ClientCore, EndpointTable, Host, Sharing, WeakClient};
use crate::dispatch::pool::endpoints::LaneEndpoints;
use crate::dispatch::{Dispatch, FilterChain, OwnPool, Pools, RequestFilter, Structure};
use crate::endpoint::{EndpointError, ListenEndpoint};
use crate::exception::SystemException;
use crate::limits::Limits;
use crate::poa::{Adapters, PoaError};
use crate::realtime::{
    BestEffort, ClientThread, ClientThreads, NamedMutexes, NativeMapping, NetworkPriorityMapping,
    Policy, PriorityMapping, PriorityTransform, RtCore, ThreadpoolLane, Transforms,
    default_network_mapping,
};
use crate::server::{Buffers, ObjectTable, ServerCore, ServerState};
use crate::strategies::{
    Collocation, ConnectionStrategy, DispatchStrategy, SharedMemoryWait, Strategies,
};
use crate::timing::{ExecutionClock, Hook, TimingViolation, Watch};
use crate::transport::resolver::Resolver;
use crate::transport::shared_memory;
use crate::wait::watchdog::Watchdog;
use crate::warning::{Warning, WarningHook, Warnings};
use core::fmt;
use core::sync::atomic::AtomicBool;
use rtorb_os::Refused;
use rtorb_os::byte_rings::{CAPACITY_MAX, CAPACITY_MIN};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::ByteOrder;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{FRAGMENT_OCTETS_MIN, Version};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Builds an [`Orb`]; every option has a default.
///
/// ```
/// use rtorb::{DispatchStrategy, Limits, Orb};
/// use std::time::Duration;
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = Orb::builder()
///     .dispatch(DispatchStrategy::Reactive)
///     .round_trip_timeout(Some(Duration::from_secs(2)))
///     .limits(Limits::with(|limits| limits.connections_max = 16))
///     .listen("iiop://127.0.0.1:0")?
///     // A later option replaces an earlier one: here the command line.
///     .args(["program", "-ORBDispatch", "worker_pool"].map(str::to_owned))?
///     .build()?;
/// assert_eq!(orb.strategies().dispatch, DispatchStrategy::WorkerPool);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OrbBuilder {
    pub(super) limits: Limits,
    pub(super) strategies: Strategies,
    byte_order: ByteOrder,
    pub(super) native_char_code_set: CharCodeSet,
    fragment_octets: Option<usize>,
    connect_timeout: Duration,
    /// What the application chose; else [`ROUND_TRIP_TIMEOUT`].
    pub(super) round_trip_timeout: Option<Option<Duration>>,
    pub(super) collocation: Collocation,
    pub(super) shared_memory: shared_memory::Settings,
    pub(super) server_threads: ThreadConfig,
    pub(super) watchdog_thread: ThreadConfig,
    pub(super) reactor_thread: ThreadConfig,
    pub(super) binds_priority_bands: bool,
    max_version: Version,
    pub(super) mapping: Arc<dyn PriorityMapping>,
    network_mapping: Option<Arc<dyn NetworkPriorityMapping>>,
    transforms: Transforms,
    pub(super) round_robin: bool,
    pub(super) best_effort: bool,
    warning_hook: Option<WarningHook>,
    pub(super) lanes: Vec<ThreadpoolLane>,
    pub(super) client_policies: Vec<Policy>,
    pub(super) pool_threads: usize,
    filters: Vec<Arc<dyn RequestFilter>>,
    execution_clock: ExecutionClock,
    timing_hook: Option<Hook>,
    initial_references: BTreeMap<String, String>,
    pub(super) listen: Vec<ListenEndpoint>,
    pub(super) lane_endpoints: LaneEndpoints,
    remaining_arguments: Vec<String>,
}

/// An error of building or running an ORB.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrbError {
    /// An option is unknown or has a wrong value.
    #[error("{option}: {reason}")]
    Option {
        /// The option, as the caller wrote it.
        option: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A configuration file cannot be read, or contains an error.
    #[error("{}: {reason}", place(path, *line))]
    ConfigFile {
        /// The file's path.
        path: PathBuf,
        /// The line number, from 1; `None` if the error concerns no line.
        line: Option<usize>,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A text is not an endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The host refused a thread or its scheduling.
    #[error(transparent)]
    Refused(Refused),
    /// An error of an object adapter.
    #[error(transparent)]
    Poa(#[from] PoaError),
    /// A system exception.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// The place of an error in a configuration file.
fn place(path: &Path, line: Option<usize>) -> String {
    let path = path.display();
    line.map_or_else(|| path.to_string(), |line| format!("{path}:{line}"))
}

impl Default for OrbBuilder {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            strategies: Strategies::default(),
            byte_order: ByteOrder::NATIVE,
            native_char_code_set: CharCodeSet::Utf8,
            fragment_octets: None,
            connect_timeout: Duration::from_secs(5),
            round_trip_timeout: None,
            collocation: Collocation::default(),
            shared_memory: shared_memory::Settings::default(),
            server_threads: ThreadConfig::default(),
            watchdog_thread: ThreadConfig::default(),
            reactor_thread: ThreadConfig::default(),
            binds_priority_bands: false,
            max_version: Version::V1_2,
            mapping: Arc::new(NativeMapping),
            network_mapping: None,
            transforms: Transforms::default(),
            round_robin: false,
            best_effort: false,
            warning_hook: None,
            lanes: Vec::new(),
            client_policies: Vec::new(),
            pool_threads: POOL_THREADS,
            filters: Vec::new(),
            execution_clock: ExecutionClock::default(),
            timing_hook: None,
            initial_references: BTreeMap::new(),
            listen: Vec::new(),
            lane_endpoints: LaneEndpoints::default(),
            remaining_arguments: Vec::new(),
        }
    }
}

impl OrbBuilder {
    /// Applies the `-ORB` options of a command line; [`remaining_arguments`](Self::remaining_arguments) returns the other
    /// arguments.
    ///
    /// A later setting replaces an earlier one. The order is: methods called before this one, the file of `-ORBConfigFile`, the
    /// other options, methods called after this one. A list (endpoints, lanes, bands) replaces the list before it; initial
    /// references are added. Within one file or command line, a single strategy replaces the one in the preset.
    ///
    /// # Errors
    /// [`OrbError::Option`] for an unknown option or a wrong value; as [`config_file`](Self::config_file).
    pub fn args(self, arguments: impl IntoIterator<Item = String>) -> Result<Self, OrbError> {
        let (mut builder, left) = options::take(self, arguments)?;
        builder.remaining_arguments = left;
        Ok(builder)
    }

    /// Applies the settings of a TOML file; settings that it does not name keep their values (`docs/reference/options.md` lists the names).
    ///
    /// # Errors
    /// [`OrbError::ConfigFile`] with the file, the line and the reason.
    pub fn config_file(self, path: impl AsRef<Path>) -> Result<Self, OrbError> {
        Settings::apply_all(vec![config_file::read(path.as_ref())?], self)
    }

    /// The arguments that are not options of the ORB, the program's name first.
    pub fn remaining_arguments(&self) -> &[String] {
        &self.remaining_arguments
    }

    /// Listens on an endpoint, for example `iiop://127.0.0.1:0`, `uiop:///run/server.sock` or `shmiop:///run/memory.sock`; call it
    /// again for more endpoints.
    ///
    /// Without an endpoint, a server listens on the loopback interface, on a port that the system chooses.
    ///
    /// # Errors
    /// [`OrbError::Endpoint`] if the text is not an endpoint.
    pub fn listen(mut self, endpoint: &str) -> Result<Self, OrbError> {
        self.listen.push(endpoint.parse()?);
        Ok(self)
    }

    /// Adds a filter to the end of the chain of [`DispatchStrategy::FilterChain`]; after the last filter, the
    /// priority of its object, else its own, selects a request's lane.
    #[must_use]
    pub fn filter(mut self, filter: impl RequestFilter + 'static) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Bounds of queues, pools, tables and messages.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        // For the system, zero means no timeout; more than a day is cut to a day.
        let timeout = self.limits.send_timeout;
        self.limits.send_timeout = timeout.clamp(SEND_TIMEOUT_MIN, WAIT_MAX);
        let idle = self.limits.idle_buffer_time;
        self.limits.idle_buffer_time = idle.clamp(IDLE_BUFFER_TIME_MIN, WAIT_MAX);
        self
    }

    /// Registers an initial reference, as `-ORBInitRef` does.
    #[must_use]
    pub fn initial_reference(mut self, name: &str, reference: &str) -> Self {
        self.initial_references
            .insert(name.to_owned(), reference.to_owned());
        self
    }

    /// Builds the ORB. It opens nothing and leaves no thread running. With best effort it starts a short-lived thread for each kind
    /// of thread, to find out what the host allows.
    ///
    /// # Errors
    /// [`OrbError::Option`] for incompatible client policies, for two lanes of one priority, for a lane whose priority the
    /// mapping does not map, and for more threads than [`Limits::pool_threads_max`]. Other options are checked when they are set.
    pub fn build(self) -> Result<Orb, OrbError> {
        self.check_client_policies()?;
        self.check_dispatch()?;
        let listen = or_loopback(self.listen)?;
        let warnings = Arc::new(Warnings::new(self.warning_hook));
        let rt = Arc::new(RtCore {
            network_mapping: self
                .network_mapping
                .unwrap_or_else(|| default_network_mapping(&*self.mapping)),
            mapping: self.mapping,
            transforms: self.transforms,
            best_effort: BestEffort::new(self.best_effort, Arc::clone(&warnings)),
            client_threads: ClientThreads::of_this_thread(),
            round_robin: self.round_robin,
            client_policies: self.client_policies,
            named_mutexes: NamedMutexes::default(),
        });
        let chain = FilterChain::new(self.filters, self.lanes);
        let dispatch = dispatch(self.strategies.dispatch, self.pool_threads, chain);
        let reader_thread = ClientThread::new(&rt, &self.reactor_thread);
        let timing = Arc::new(Watch::new(self.execution_clock, self.timing_hook));
        let client = Arc::new(ClientCore {
            limits: self.limits,
            byte_order: self.byte_order,
            native_char_code_set: self.native_char_code_set,
            fragment_bytes: self.fragment_octets,
            max_version: self.max_version,
            connect_timeout: self.connect_timeout,
            round_trip_timeout: self.round_trip_timeout.unwrap_or(Some(ROUND_TRIP_TIMEOUT)),
            is_timeout_chosen: self.round_trip_timeout.flatten().is_some(),
            collocation: self.collocation,
            shared_memory: self.shared_memory,
            binds_priority_bands: self.binds_priority_bands,
            sharing: Sharing::new(self.strategies.connection, reader_thread),
            watchdog: Watchdog::new(ClientThread::new(&rt, &self.watchdog_thread)),
            resolver: Resolver::of_this_thread(),
            endpoints: EndpointTable::default(),
            is_closed: AtomicBool::new(false),
            rt: Arc::clone(&rt),
            timing: Arc::clone(&timing),
        });
        let pools = Pools::new(listen, self.lane_endpoints, client.limits.pool_threads_max);
        let core = Arc::new_cyclic(|host: &Weak<OrbCore>| {
            let server = ServerCore {
                timing,
                warnings,
                byte_order: self.byte_order,
                fragment_octets: self.fragment_octets,
                server_threads: client.rt.obtainable(&self.server_threads),
                shared_memory: self.shared_memory,
                epoch: epoch(),
                objects: ObjectTable::new(client.limits.objects_max),
                buffers: Buffers::new(client.limits.spare_buffers_max),
                client: WeakClient {
                    core: Arc::clone(&client),
                    host: host.clone() as Weak<dyn Host>,
                },
                state: ServerState::default(),
                limits: client.limits.clone(),
                rt,
            };

            OrbCore {
                strategies: self.strategies,
                client,
                adapters: Adapters::new(Arc::new(server), dispatch, pools),
                initial_references: Mutex::new(self.initial_references),
                shutdown_signal: ShutdownSignal::of_this_thread(),
            }
        });
        Ok(Orb { core })
    }

    fn check_client_policies(&self) -> Result<(), OrbError> {
        for policy in &self.client_policies {
            let checked = match policy {
                Policy::PriorityBandedConnection(bands) if !bands.is_empty() => check_bands(bands),
                Policy::ClientProtocol(protocols) => check_protocols(protocols),
                policy if policy.is_server_only() => {
                    Err("it belongs to an adapter: pass it to create_poa".to_owned())
                }
                _ => Ok(()),
            };
            checked.map_err(|reason| OrbError::Option {
                option: format!("client policy {}", policy.name()),
                reason,
            })?;
        }
        Ok(())
    }

    fn check_lanes(&self) -> Result<(), OrbError> {
        if self.lanes.is_empty() {
            return Ok(());
        }
        let unknown = |lane: &&ThreadpoolLane| self.mapping.to_native(lane.lane_priority).is_none();
        let threads = self.lanes.iter().map(|lane| lane.static_threads as usize);
        let bounded = self.check_threads(threads.fold(0, usize::saturating_add));
        let checked = check_lanes(&self.lanes).and(bounded);
        let checked = checked.and_then(|()| match self.lanes.iter().find(unknown) {
            Some(lane) => Err(format!(
                "CORBA priority {} is none of this host's by {:?}; choose another priority, or another mapping by \
                 -ORBPriorityMapping",
                lane.lane_priority, self.mapping
            )),
            None => Ok(()),
        });
        checked.map_err(|reason| OrbError::Option {
            option: "-ORBLanes".to_owned(),
            reason,
        })
    }

    fn check_dispatch(&self) -> Result<(), OrbError> {
        self.check_lanes()?;
        let checked = self.check_threads(self.pool_threads);
        checked.map_err(|reason| OrbError::Option {
            option: "-ORBPoolThreads".to_owned(),
            reason,
        })
    }

    /// Checks a number of threads that start with an adapter.
    fn check_threads(&self, threads: usize) -> Result<(), String> {
        let max = self.limits.pool_threads_max;
        if threads > max {
            return Err(format!(
                "{threads} threads are more than `pool_threads_max`, which is {max}; write fewer, or raise it in [limits] of a \
                 configuration file"
            ));
        }
        Ok(())
    }
}

/// Makes a method of the builder for each option that replaces one field.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty)?) => $($field:ident).+ = $value:expr;)*) => {
        impl OrbBuilder {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self $(, $argument: $type)?) -> Self {
                self.$($field).+ = $value;
                self
            })*
        }
    };
}

options! {
    /// How invocations share connections, and how client threads wait for replies.
    connection(connection: ConnectionStrategy) => strategies.connection = connection;

    /// Which thread of the server reads requests and calls servants.
    dispatch(dispatch: DispatchStrategy) => strategies.dispatch = dispatch;

    /// Sets all strategies, for example a preset.
    strategies(strategies: Strategies) => strategies = strategies;

    /// Scheduling of the threads that serve requests; by default they inherit it from the thread that runs the ORB.
    server_threads(config: ThreadConfig) => server_threads = config;

    /// Scheduling of the watchdog, the thread that ends calls whose timeout has passed, and waits whose peer in shared memory is
    /// gone. If its priority is too low, both are late. What is not chosen here does not depend on the thread that starts it: it has
    /// the policy and the CPUs of the thread that built the ORB; and with lanes, or threads that set their CORBA priority, it is
    /// kept one native priority above the most urgent of them.
    watchdog_thread(config: ThreadConfig) => watchdog_thread = config;

    /// Scheduling of the thread that reads replies for all client threads with
    /// [`WaitStrategy::Reactor`](crate::WaitStrategy::Reactor), and of each connection's thread with
    /// [`WaitStrategy::ConnectionThread`](crate::WaitStrategy::ConnectionThread). Every call waits for this thread. The default is
    /// that of [`watchdog_thread`](Self::watchdog_thread).
    reactor_thread(config: ThreadConfig) => reactor_thread = config;

    /// Timeout of a call, from its beginning to its result (RelativeRoundtripTimeout); 30 s by default, `None` for no timeout.
    ///
    /// It bounds all that the call does: resolving the host name, connecting, further endpoints, forwards, waiting for a
    /// shared connection, sending, waiting for the reply, and sending again on a new connection. Endpoints that may still be
    /// tried share the time that is left. The call fails with TIMEOUT, and the [`Cause`](crate::exception::Cause) says what it was
    /// doing; COMPLETED_NO means that nothing of the request was sent.
    ///
    /// The default does not concern objects of this ORB that are called directly ([`collocation`](Self::collocation)). Any other
    /// timeout makes such calls go by a transport, because nothing can end a servant that runs on the thread of its caller.
    round_trip_timeout(timeout: Option<Duration>) => round_trip_timeout = Some(timeout);

    /// How this ORB calls objects that it serves itself; on the calling thread by default, where that is possible.
    collocation(collocation: Collocation) => collocation = collocation;

    /// What threads of this ORB do before they sleep when they wait for a peer through shared memory; `Futex` by default.
    shared_memory_wait(wait: SharedMemoryWait) => shared_memory.wait = wait;

    /// Bytes of each of the two rings that a server makes for a client by shared memory: a power of two from 4 KiB to 64 MiB; 256
    /// KiB by default. Other numbers are rounded up. A larger message goes through the ring in parts.
    shared_memory_ring_bytes(bytes: usize) => shared_memory.ring_bytes = rounded_capacity(bytes);

    /// Trusts processes of that group as peers by shared memory, beside those of the own user. The group is the primary one of the
    /// peer (SO_PEERCRED).
    shared_memory_group(group: u32) => shared_memory.group = Some(group);

    /// The clock that measures a servant's execution against its annotated worst case; CPU time by default. It concerns only
    /// operations with `@worst_case_time`.
    execution_clock(clock: ExecutionClock) => execution_clock = clock;

    /// The byte order of messages; this machine's by default. Tests use it to act as a peer with another byte order.
    byte_order(order: ByteOrder) => byte_order = order;

    /// The native code set of `char` and `string` data; UTF-8 by default. References to objects of this ORB name it first, and calls ask
    /// for it first.
    ///
    /// In UTF-8 a `char` is ASCII. With ISO 8859-1, a server exchanges every `char` with a client that has ISO 8859-1, such as one of
    /// omniORB, and still takes UTF-8 from others.
    native_char_code_set(set: CharCodeSet) => native_char_code_set = set;

    /// Runs threads with a CORBA priority under SCHED_RR instead of SCHED_FIFO.
    round_robin() => round_robin = true;

    /// Sends the band of each new banded connection to the server (`_bind_priority_band`, service context RTCorbaPriorityRange).
    /// It costs one more round trip when the connection is opened. Servers without this extension work too.
    bind_priority_bands() => binds_priority_bands = true;

    /// The mapping from CORBA priorities to packet marks, for connections whose protocol properties set
    /// `enable_network_priority`; by default the priorities that the mapping uses are spread over six treatments
    /// ([`NetworkPriorityTable::even`](crate::realtime::NetworkPriorityTable::even)).
    network_priority_mapping(mapping: impl NetworkPriorityMapping + 'static) => network_mapping = Some(Arc::new(mapping));

    /// The mapping from CORBA priorities to this host's (RTCORBA::PriorityMapping); [`NativeMapping`] by default.
    priority_mapping(mapping: impl PriorityMapping + 'static) => mapping = Arc::new(mapping);

    /// Changes the priority of each incoming call before its servant runs.
    inbound_transform(transform: impl PriorityTransform + 'static) => transforms.inbound = Some(Arc::new(transform));

    /// Changes the priority of each outgoing call.
    outbound_transform(transform: impl PriorityTransform + 'static) => transforms.outbound = Some(Arc::new(transform));

    /// The lanes of the ORB's own pool, for [`DispatchStrategy::Lanes`], and the servant threads of
    /// [`DispatchStrategy::FilterChain`]; without lanes there is one, scheduled as `server_threads` says.
    lanes(lanes: impl IntoIterator<Item = ThreadpoolLane>) => lanes = lanes.into_iter().collect();

    /// Policies of calls through all references that do not override them (the ORB's PolicyManager).
    client_policies(policies: impl IntoIterator<Item = Policy>) => client_policies = policies.into_iter().collect();

    /// Threads of the pool of [`DispatchStrategy::WorkerPool`] and [`DispatchStrategy::LeaderFollowers`]; 4 by default, at
    /// least 1.
    pool_threads(threads: usize) => pool_threads = threads.max(1);

    /// Timeout of opening a connection, which includes resolving the host name; 5 s by default, from 1 ms to a day. A call's own
    /// timeout bounds it too.
    // Zero would fail at once over TCP, and has no meaning for a UNIX socket.
    connect_timeout(timeout: Duration) => connect_timeout = timeout.clamp(CONNECT_TIMEOUT_MIN, WAIT_MAX);

    /// Splits larger messages into fragments of at most this many bytes; by default messages are not fragmented.
    ///
    /// It is for peers that cannot receive a large message in one piece. At least 24, rounded down to a multiple of 8.
    fragment_octets(octets: usize) => fragment_octets = Some(octets.max(FRAGMENT_OCTETS_MIN) & !7);

    /// The highest GIOP version of requests; 1.2 by default.
    max_giop_version(version: Version) => max_version = version.clamp(Version::V1_0, Version::V1_2);

    /// Continues without real-time scheduling if the host refuses it, and [warns](Self::on_warning) of that once.
    ///
    /// Without this option a refusal is an error: NO_PERMISSION, or [`OrbError::Refused`] for a thread of the ORB.
    best_effort() => best_effort = true;

    /// Calls `hook` with each [`Warning`] of this ORB: print it, or write it to the log. The feature `tracing` has the same as events
    /// of the level WARN. Without either, nobody sees them: the library writes nothing to standard error.
    ///
    /// A hook runs on the thread that found the cause, so it should not wait. Each cause that the ORB itself finds is given once, that
    /// of a service each time. A panic in the hook ends only the hook.
    on_warning(hook: impl Fn(&Warning) + Send + Sync + 'static) => warning_hook = Some(Arc::new(hook));

    /// Calls `hook` for each call that exceeds an annotated limit of its operation. [`Orb::timing`] counts such calls with and
    /// without a hook.
    ///
    /// The hook runs on the thread of the call, at the call's priority: in a server after the reply is sent, in a client before
    /// the call returns. It delays that thread, so it should be short, and neither wait nor make calls: store the violation or
    /// count it. Several threads may run the hook at once. Calls that the hook makes through this ORB are counted, but do not
    /// run the hook again. A panic in the hook ends only the hook.
    on_timing_violation(hook: impl Fn(&TimingViolation) + Send + Sync + 'static) => timing_hook = Some(Arc::new(hook));
}

/// The endpoints, or a port of the loopback interface if there are none.
fn or_loopback(mut endpoints: Vec<ListenEndpoint>) -> Result<Vec<ListenEndpoint>, EndpointError> {
    if endpoints.is_empty() {
        endpoints.push("iiop://127.0.0.1:0".parse()?);
    }
    Ok(endpoints)
}

/// The state of a dispatch strategy; `chain` has the filters and the lanes.
fn dispatch(strategy: DispatchStrategy, threads: usize, chain: FilterChain) -> Dispatch {
    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
    let structure = match strategy {
        DispatchStrategy::ThreadPerConnection => return Dispatch::ThreadPerConnection,
        DispatchStrategy::Reactive => Structure::Reactive,
        DispatchStrategy::WorkerPool => Structure::WorkerPool { threads },
        DispatchStrategy::LeaderFollowers => Structure::LeaderFollowers { threads },
        DispatchStrategy::FilterChain => Structure::FilterChain(Arc::new(chain)),
        DispatchStrategy::Lanes => Structure::Lanes(chain.lanes),
    };
    Dispatch::Pool(OwnPool::new(structure))
}

/// The capacity of a ring for so many bytes.
fn rounded_capacity(bytes: usize) -> usize {
    bytes.clamp(CAPACITY_MIN, CAPACITY_MAX).next_power_of_two()
}

/// The default timeout of a call.
const ROUND_TRIP_TIMEOUT: Duration = Duration::from_secs(30);

/// The default number of threads of a pool.
const POOL_THREADS: usize = 4;

/// A day: system calls limit the duration of a timeout.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// The shortest timeout of opening a connection.
const CONNECT_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// The shortest time after which a silent connection gives its buffer back.
const IDLE_BUFFER_TIME_MIN: Duration = Duration::from_millis(10);

/// The shortest timeout of sending a reply.
const SEND_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// A number that no other ORB of this host has: its start time combined with its process id.
#[expect(
    clippy::disallowed_types,
    reason = "it makes a number that no other run had, and measures nothing"
)]
fn epoch() -> u64 {
    use std::time::SystemTime;

    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    since ^ u64::from(std::process::id()) << 48
}

impl fmt::Debug for OrbBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrbBuilder")
            .field("strategies", &self.strategies)
            .field("limits", &self.limits)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

//! The builder of an ORB: all options are set here, before the ORB exists.

use super::config::{
    LimitConfig, Mapping, OrbConfig, RoundRobin, check_bands, check_lanes, check_protocols,
    limits_out_of_range,
};
use super::group::Group;
use super::lane_levels::{check_levels, check_reserved_cpus};
use super::options::CommandLine;
use super::ranges::{Count, Milliseconds};
use super::reply_handlers::ReplyHandlers;
use super::shutdown_signal::ShutdownSignal;
use super::{Orb, OrbCore, config_file};
use crate::connection::{
    BidirectionalTable, ClientCore, EnclosingOrb, EndpointTable, Sharing, WeakClient, started,
};
use crate::dispatch::{Dispatch, FilterChain, OwnPool, Pools, RequestFilter, Structure};
use crate::endpoint::{EndpointError, ListenEndpoint};
use crate::exception::SystemException;
use crate::interceptors::{
    ClientRequestInterceptor, INTERCEPTORS_MAX, Interceptors, IorInterceptor,
    ServerRequestInterceptor,
};
use crate::limits::Limits;
use crate::poa::{Adapters, PoaError, ServantAdmission};
use crate::realtime::{
    BestEffort, ClientThread, ClientThreads, NamedMutexes, NetworkPriorityMapping, Policy,
    PriorityMapping, PriorityTransform, RtCore, ThreadpoolLane, Transforms,
    default_network_mapping,
};
use crate::recorder;
use crate::security::{SecureTransport, SecurityProvider, SecurityReport};
use crate::server::{
    Buffers, DeferredReplies, HeldRequests, ObjectTable, ServerCore, ServerState, next_upcall,
};
use crate::strategies::{
    Collocation, ConnectionStrategy, DeadlineForm, Deadlines, DispatchStrategy, FullCallTable,
    SharedMemoryWait, Strategies,
};
use crate::timing::{
    EarlyCalls, Enforcement, Enforcer, ExecutionClock, Hook, Overrun, PeriodScope, TimingCounters,
    TimingSettings, TimingViolation,
};
use crate::transport::resolver::Resolver;
use crate::transport::{Securing, shared_memory};
use crate::wait::call_table::CallTable;
use crate::wait::watchdog::{Watchdog, WatchedReplies};
use crate::warning::{Warning, WarningHook, Warnings};
use core::{fmt, mem};
use rtorb_os::Refused;
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::ByteOrder;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::timeout_ns;
use rtorb_wire::giop::{FRAGMENT_BYTES_MIN, Version};
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
///     .listen("iiop://127.0.0.1:0")
///     // A later option replaces an earlier one: here the command line.
///     .args(["program", "-ORBDispatch", "worker_pool"].map(str::to_owned))
///     .build()?;
/// assert_eq!(orb.strategies().dispatch, DispatchStrategy::WorkerPool);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct OrbBuilder {
    /// What files and command lines can set too.
    pub(super) config: OrbConfig,
    /// The limits without those of `config`.
    limits: Limits,
    /// The client policies without those of `config`.
    client_policies: Vec<Policy>,
    byte_order: Option<ByteOrder>,
    fragment_bytes: Option<Count<{ FRAGMENT_BYTES_MIN as u64 }>>,
    max_version: Option<Version>,
    network_mapping: Option<Arc<dyn NetworkPriorityMapping>>,
    transforms: Transforms,
    warning_hook: Option<WarningHook>,
    secure_transport: Option<Arc<dyn SecureTransport>>,
    security_provider: Option<SecurityProvider>,
    filters: Vec<Arc<dyn RequestFilter>>,
    execution_clock: ExecutionClock,
    timing_hook: Option<Hook>,
    servant_admission: Option<Arc<dyn ServantAdmission>>,
    interceptors: Interceptors,
    remaining_arguments: Vec<String>,
    /// The mistakes so far.
    mistakes: Vec<OrbError>,
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
    /// Several mistakes in the options of one ORB, at least two.
    #[error("{}", lines(_0))]
    Several(Vec<OrbError>),
}

/// The errors, one on each line.
fn lines(errors: &[OrbError]) -> String {
    let texts: Vec<String> = errors.iter().map(OrbError::to_string).collect();
    texts.join("\n")
}

/// The place of an error in a configuration file.
fn place(path: &Path, line: Option<usize>) -> String {
    let path = path.display();
    line.map_or_else(|| path.to_string(), |line| format!("{path}:{line}"))
}

impl OrbBuilder {
    /// Applies the `-ORB` options of a command line; [`remaining_arguments`](Self::remaining_arguments) returns the other
    /// arguments.
    ///
    /// A later setting replaces an earlier one, but a wrong one stays a mistake. The order is: methods called before this one, the file of `-ORBConfigFile`, the
    /// other options, methods called after this one. A list of a file or of the command line (endpoints, lanes, bands) replaces the list
    /// before it; initial references are added. Within one command line, further options with endpoints add theirs. Within one file or
    /// command line, a single strategy replaces the one in the preset.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        let line = CommandLine::parse(arguments);
        self.remaining_arguments = line.remaining;
        self.mistakes.extend(line.mistakes);
        line.configs.into_iter().fold(self, Self::config)
    }

    /// Applies the settings of a TOML file; settings that it does not name keep their values (`docs/reference/options.md` lists the names).
    #[must_use]
    pub fn config_file(mut self, path: impl AsRef<Path>) -> Self {
        match config_file::read(path.as_ref()) {
            Ok(config) => self.config(config),
            Err(error) => {
                self.mistakes.push(error);
                self
            }
        }
    }

    /// Applies a configuration; settings that it does not have keep their values.
    #[must_use]
    pub fn config(mut self, config: OrbConfig) -> Self {
        self.config.apply(config);
        self
    }

    /// The arguments that are not options of the ORB, the program's name first.
    pub fn remaining_arguments(&self) -> &[String] {
        &self.remaining_arguments
    }

    /// Listens on an endpoint, for example `iiop://127.0.0.1:0`, `uiop:///run/server.sock`, `shmiop:///run/memory.sock`, or
    /// `inherited://NAME` for [sockets of a service manager](crate::endpoint::InheritedSockets); call it again for more endpoints.
    ///
    /// Without an endpoint, a server listens on the loopback interface, on a port that the system chooses.
    #[must_use]
    pub fn listen(mut self, endpoint: &str) -> Self {
        match endpoint.parse() {
            Ok(endpoint) => self.config.listen.get_or_insert_default().push(endpoint),
            Err(error) => self.mistakes.push(EndpointError::into(error)),
        }
        self
    }

    /// Sets all strategies, for example a preset.
    #[must_use]
    pub fn strategies(mut self, strategies: Strategies) -> Self {
        self.config.set_strategies(strategies);
        self
    }

    /// How invocations share connections, and how client threads wait for replies.
    #[must_use]
    pub fn connection(mut self, connection: ConnectionStrategy) -> Self {
        self.config.connection = Some(connection);
        self.config.wait = Some(connection.wait());
        self
    }

    /// Adds a filter to the end of the chain of [`DispatchStrategy::FilterChain`]; after the last filter, the
    /// priority of its object, else its own, selects a request's lane.
    #[must_use]
    pub fn filter(mut self, filter: impl RequestFilter + 'static) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Adds an interceptor of the requests that the ORB sends, behind those before it. At most 16.
    #[must_use]
    pub fn client_interceptor(
        mut self,
        interceptor: impl ClientRequestInterceptor + 'static,
    ) -> Self {
        self.interceptors.client.push(Arc::new(interceptor));
        self
    }

    /// Adds an interceptor of the requests that the ORB serves, behind those before it. At most 16.
    #[must_use]
    pub fn server_interceptor(
        mut self,
        interceptor: impl ServerRequestInterceptor + 'static,
    ) -> Self {
        let added: Arc<dyn ServerRequestInterceptor> = Arc::new(interceptor);
        let others = self.interceptors.server.iter().cloned();
        self.interceptors.server = others.chain([added]).collect();
        self
    }

    /// Adds an interceptor of the references that the ORB makes. At most 16.
    #[must_use]
    pub fn ior_interceptor(mut self, interceptor: impl IorInterceptor + 'static) -> Self {
        self.interceptors.ior.push(Arc::new(interceptor));
        self
    }

    /// Bounds of queues, pools, tables and messages.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        for (name, wrong) in limits_out_of_range(&limits) {
            self.checked::<()>(name, Err(wrong));
        }
        self.limits = limits;
        self.config.limits = LimitConfig::default();
        self
    }

    /// Policies of calls through all references that do not override them (the ORB's PolicyManager).
    #[must_use]
    pub fn client_policies(mut self, policies: impl IntoIterator<Item = Policy>) -> Self {
        self.client_policies = policies.into_iter().collect();
        (self.config.bands, self.config.client_protocols) = (None, None);
        self
    }

    /// Registers an initial reference, as `-ORBInitRef` does.
    #[must_use]
    pub fn initial_reference(mut self, name: &str, reference: &str) -> Self {
        let references = &mut self.config.initial_references;
        references.insert(name.to_owned(), reference.to_owned());
        self
    }

    /// Builds the ORB. It opens nothing and leaves no thread running. With best effort it starts a short-lived thread for each kind
    /// of thread, to find out what the host allows.
    ///
    /// # Errors
    /// All mistakes in the options: unknown options, wrong values, values out of range with the range. If there are none of these, the
    /// strategies, policies or lanes that do not go together. If there are several, [`OrbError::Several`].
    pub fn build(mut self) -> Result<Orb, OrbError> {
        self.config.limits.replace(&mut self.limits);
        self.merge_client_policies();
        let strategies = self.check()?;
        self.start_recorder()?;
        let listen = or_loopback(self.config.listen.take().unwrap_or_default())?;
        let warnings = Arc::new(Warnings::new(self.warning_hook.take()));
        let rt = Arc::new(self.rt_core(&warnings));
        let lanes = self.config.lanes.take().unwrap_or_default();
        let own_threads = lanes.iter().map(|lane| lane.static_threads as usize);
        let own_threads = own_threads.fold(0, usize::saturating_add);
        let chain = FilterChain::new(core::mem::take(&mut self.filters), lanes);
        let dispatch = dispatch(strategies.dispatch, self.thread_count(), chain);
        let timing = self.timing_counters(&rt);
        let securing = Securing {
            transport: self.take_secure_transport()?,
            report: reporter(&warnings),
        };
        let client = self.client_core(strategies, rt, Arc::new(timing), securing);
        let client = Arc::new(client);
        let admission = self.servant_admission.take();
        let config = self.config;
        let pools = Pools::new(
            listen,
            config.lane_endpoints.unwrap_or_default(),
            client.limits.pool_threads_max,
            own_threads,
            client.securing.clone(),
        );
        let upcall = next_upcall();
        let core = Arc::new_cyclic(|host: &Weak<OrbCore>| {
            let server = ServerCore {
                timing: Arc::clone(&client.timing),
                warnings,
                byte_order: client.byte_order,
                fragment_bytes: client.fragment_bytes,
                server_threads: client
                    .rt
                    .obtainable(&config.server_threads.unwrap_or_default()),
                shared_memory: client.shared_memory,
                epoch: epoch(),
                upcall,
                objects: ObjectTable::new(client.limits.objects_max, upcall),
                root: SetOnce::new(),
                activation: SetOnce::new(),
                deferred: deferred_replies(&client),
                held: HeldRequests::new(&client.limits),
                buffers: Buffers::new(client.limits.spare_buffers_max),
                client: WeakClient {
                    core: Arc::clone(&client),
                    host: host.clone() as Weak<dyn EnclosingOrb>,
                },
                state: ServerState::default(),
                limits: client.limits.clone(),
                rt: Arc::clone(&client.rt),
            };

            let reader = started::reply_reader(&client.sharing).cloned();
            OrbCore {
                strategies,
                client,
                adapters: Adapters::new(Arc::new(server), dispatch, pools, admission),
                initial_references: Mutex::new(config.initial_references),
                reply_handlers: ReplyHandlers::new(reader.unwrap_or_default()),
                shutdown_signal: ShutdownSignal::of_this_thread(),
            }
        });
        Ok(Orb { core })
    }

    fn start_recorder(&mut self) -> Result<(), OrbError> {
        if let Some(bytes) = self.config.record_calls {
            self.config.recorder = Some(true);
            // Before the recorder: a thread that serves populates its ring when it enters that.
            recorder::start_copies(bytes.get()).map_err(OrbError::Refused)?;
        }
        if self.config.recorder == Some(true) {
            recorder::start().map_err(OrbError::Refused)?;
        }
        Ok(())
    }

    /// Takes the real-time settings out of the builder.
    fn rt_core(&mut self, warnings: &Arc<Warnings>) -> RtCore {
        let config = &mut self.config;
        let Mapping(mapping) = config.priority_mapping.take().unwrap_or_default();
        let network_mapping = self.network_mapping.take();
        RtCore {
            network_mapping: network_mapping.unwrap_or_else(|| default_network_mapping(&*mapping)),
            mapping,
            transforms: core::mem::take(&mut self.transforms),
            best_effort: BestEffort::new(config.best_effort.unwrap_or(false), Arc::clone(warnings)),
            client_threads: ClientThreads::of_this_thread(),
            round_robin: config.sched_policy.is_some_and(|policy| policy.0),
            client_policies: core::mem::take(&mut self.client_policies),
            named_mutexes: NamedMutexes::default(),
        }
    }

    /// Takes the settings of timed operations out of the builder.
    fn timing_counters(&mut self, rt: &Arc<RtCore>) -> TimingCounters {
        let config = &mut self.config;
        let enforcement = Enforcement {
            overrun: config.overrun.unwrap_or_default(),
            early: config.early_calls.unwrap_or_default(),
            scope: config.period_scope.unwrap_or_default(),
        };
        let thread = config.enforcing_thread.take().unwrap_or_default();
        let enforcer = Enforcer::new(ClientThread::new(rt, &thread), Arc::clone(rt));
        let settings = TimingSettings {
            clock: self.execution_clock,
            enforces_deadlines: config.deadlines.unwrap_or_default() == Deadlines::Enforce,
            enforcement,
            hook: self.timing_hook.take(),
        };
        TimingCounters::new(settings, enforcer)
    }

    /// Takes the settings of the client side out of the builder.
    fn client_core(
        &mut self,
        strategies: Strategies,
        rt: Arc<RtCore>,
        timing: Arc<TimingCounters>,
        securing: Securing,
    ) -> ClientCore {
        let config = &mut self.config;
        let reader_thread = config.reactor_thread.take().unwrap_or_default();
        let watchdog_thread = config.watchdog_thread.take().unwrap_or_default();
        let usual = shared_memory::Settings::default();
        let ring_bytes = config.shm_ring_bytes.map_or(usual.ring_bytes, Count::get);
        ClientCore {
            limits: self.limits.clone(),
            byte_order: self.byte_order.unwrap_or(ByteOrder::NATIVE),
            native_char_code_set: config.native_char_code_set.unwrap_or(CharCodeSet::Utf8),
            fragment_bytes: self.fragment_bytes.map(|bytes| bytes.get() & !7),
            max_version: self.max_version.unwrap_or(Version::V1_2),
            connect_timeout: config
                .connect_timeout_ms
                .map_or(CONNECT_TIMEOUT, Milliseconds::get),
            round_trip_ns: timeout_ns(
                config
                    .round_trip_timeout_ms
                    .unwrap_or(Some(ROUND_TRIP_TIMEOUT)),
            ),
            is_timeout_chosen: config.round_trip_timeout_ms.flatten().is_some(),
            collocation: config.collocation.unwrap_or_default(),
            deadline_form: config.deadline_form.unwrap_or_default(),
            shared_memory: shared_memory::Settings {
                wait: config.shm_wait.unwrap_or_default(),
                ring_bytes: ring_bytes.next_power_of_two(),
                group: config.shm_group.take().map(|group| group.0),
            },
            securing,
            requires_tls: config.tls_required == Some(true),
            binds_priority_bands: config.bind_priority_bands.unwrap_or(false),
            sharing: if config.bidirectional == Some(true) {
                Sharing::Bidirectional(BidirectionalTable::default())
            } else {
                Sharing::new(
                    strategies.connection,
                    ClientThread::new(&rt, &reader_thread),
                )
            },
            watchdog: Watchdog::new(
                ClientThread::new(&rt, &watchdog_thread),
                CallTable::new(
                    self.limits.started_calls_max,
                    config.full_call_table.unwrap_or_default(),
                ),
            ),
            resolver: Resolver::of_this_thread(),
            endpoints: EndpointTable::default(),
            special: ClientCore::special(&self.interceptors, config.recorder == Some(true)),
            interceptors: core::mem::take(&mut self.interceptors),
            rt,
            timing,
        }
    }

    /// Takes the secure transport that the application gave, or has it made from the files of the configuration.
    fn take_secure_transport(&mut self) -> Result<Option<Arc<dyn SecureTransport>>, OrbError> {
        let given = self.secure_transport.take();
        let files = self.config.security_files();
        let wrong = |option: &str, reason| OrbError::Option {
            option: option.to_owned(),
            reason,
        };
        if files.is_empty() {
            if given.is_none() && self.config.tls_required == Some(true) {
                return Err(wrong("-ORBTlsRequired", WITHOUT_TLS.to_owned()));
            }
            return Ok(given);
        }
        let provider = self.security_provider.ok_or_else(|| {
            wrong("TLS", "this program has no TLS: the command is built with `--features tls`, another with rtorb-tls and OrbBuilder::security_provider".to_owned())
        })?;
        provider(&files)
            .map(Some)
            .map_err(|reason| wrong("TLS", reason))
    }

    /// Returns the value of an option, or notes the mistake.
    fn checked<T>(&mut self, option: &str, value: Result<T, String>) -> Option<T> {
        let noted = value.map_err(|reason| OrbError::Option {
            option: option.to_owned(),
            reason,
        });
        noted.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }

    /// Moves the client policies of the configuration to the others.
    fn merge_client_policies(&mut self) {
        if let Some(bands) = self.config.bands.take() {
            self.replace_client_policy(Policy::PriorityBandedConnection(bands));
        }
        if let Some(protocols) = self.config.client_protocols.take() {
            self.replace_client_policy(Policy::ClientProtocol(protocols));
        }
    }

    fn replace_client_policy(&mut self, policy: Policy) {
        let is_other = |other: &Policy| other.name() != policy.name();
        self.client_policies.retain(is_other);
        self.client_policies.push(policy);
    }

    /// Returns the strategies, or all mistakes.
    fn check(&mut self) -> Result<Strategies, OrbError> {
        let strategies = self.config.strategies();
        // What depends on several options is checked only if each of them is right.
        if self.mistakes.is_empty() {
            self.check_client_policies();
            let interceptors = self.check_interceptors();
            self.checked("interceptors", interceptors);
            let lanes = self.check_lanes();
            self.checked("-ORBLanes", lanes);
            if strategies.as_ref().is_ok_and(has_pool_threads) {
                let threads = self.check_threads(self.thread_count());
                self.checked("-ORBPoolThreads", threads);
            }
            if let (Ok(strategies), Some(true)) = (&strategies, self.config.bidirectional) {
                let checked = check_bidirectional(*strategies);
                self.checked("-ORBBidirectional", checked);
                let is_plain = self.config.tls_required != Some(true);
                let checked = is_plain.then_some(()).ok_or(BIDIRECTIONAL_IS_PLAIN);
                self.checked("-ORBTlsRequired", checked.map_err(str::to_owned));
            }
            if self.config.record_calls.is_some() && self.config.recorder == Some(false) {
                let reason = "copies of calls need the recorder: leave out -ORBRecorder no";
                self.checked::<()>("-ORBRecordCalls", Err(reason.to_owned()));
            }
            self.mistakes.extend(strategies.clone().err());
        }
        match self.mistakes.len() {
            0 | 1 => self.mistakes.pop().map_or(strategies, Err),
            _ => Err(OrbError::Several(mem::take(&mut self.mistakes))),
        }
    }

    fn check_interceptors(&self) -> Result<(), String> {
        let Interceptors {
            client,
            server,
            ior,
        } = &self.interceptors;
        let most = client.len().max(server.len()).max(ior.len());
        if most > INTERCEPTORS_MAX {
            return Err(format!(
                "{most} interceptors of one kind, at most {INTERCEPTORS_MAX} are possible: join some of them"
            ));
        }
        Ok(())
    }

    fn check_client_policies(&mut self) {
        for policy in self.client_policies.clone() {
            let checked = match &policy {
                Policy::PriorityBandedConnection(bands) if !bands.is_empty() => check_bands(bands),
                Policy::ClientProtocol(protocols) => check_protocols(protocols),
                policy if policy.is_server_only() => {
                    Err("it belongs to an adapter: pass it to create_poa".to_owned())
                }
                _ => Ok(()),
            };
            self.checked(&format!("client policy {}", policy.name()), checked);
        }
    }

    fn check_lanes(&self) -> Result<(), String> {
        let lanes = self.config.lanes.as_deref().unwrap_or_default();
        if lanes.is_empty() {
            return Ok(());
        }
        check_lanes(lanes)?;
        let threads = lanes.iter().map(|lane| lane.static_threads as usize);
        self.check_threads(threads.fold(0, usize::saturating_add))?;
        let Mapping(mapping) = self.config.priority_mapping.clone().unwrap_or_default();
        let unknown = |lane: &&ThreadpoolLane| mapping.to_native(lane.lane_priority).is_none();
        match lanes.iter().find(unknown) {
            Some(lane) => Err(format!(
                "this host has no counterpart of CORBA priority {} by {mapping:?}; choose another priority, or another mapping by \
                 -ORBPriorityMapping",
                lane.lane_priority
            )),
            None => {
                let threads = self.config.server_threads.clone().unwrap_or_default();
                check_reserved_cpus(lanes, &threads)?;
                check_levels(lanes, mapping.as_ref())
            }
        }
    }

    /// Returns the number of threads of the dispatch strategies that have one.
    fn thread_count(&self) -> usize {
        self.config.pool_threads.map_or(POOL_THREADS, Count::get)
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

/// Makes a method of the builder for each option that any value of its type suits.
macro_rules! setters {
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

/// Makes a method of the builder for each option whose value may be out of range.
macro_rules! checked_setters {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty) => $($field:ident).+ = $checked:expr;)*) => {
        impl OrbBuilder {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $argument: $type) -> Self {
                self.$($field).+ = self.checked(stringify!($name), $checked);
                self
            })*
        }
    };
}

checked_setters! {
    /// Threads of the pool of [`DispatchStrategy::WorkerPool`] and [`DispatchStrategy::LeaderFollowers`]; 4 by default, at
    /// least 1.
    pool_threads(threads: usize) => config.pool_threads = Count::new(threads);

    /// Timeout of opening a connection, which includes resolving the host name; 5 s by default, from 1 ms to a day. A call's own
    /// timeout bounds it too.
    connect_timeout(timeout: Duration) => config.connect_timeout_ms = Milliseconds::new(timeout);

    /// Bytes of each of the two rings that a server makes for a client by shared memory: from 4 KiB to 64 MiB, rounded up to a power
    /// of two; 256 KiB by default. A larger message goes through the ring in parts.
    shared_memory_ring_bytes(bytes: usize) => config.shm_ring_bytes = Count::new(bytes);

    /// Lets `rtorb record --in-lane` record whole calls of this process: each thread that serves them has a ring of that many bytes for copies,
    /// from [`RING_BYTES_MIN`](crate::recorder::RING_BYTES_MIN) to [`RING_BYTES_MAX`](crate::recorder::RING_BYTES_MAX). Calls are copied
    /// only while the command runs. It starts the [`recorder`](crate::recorder) too. The first ORB of a process that has this makes the rings.
    record_calls(ring_bytes: usize) => config.record_calls = Count::new(ring_bytes);

    /// Splits larger messages into fragments of at most this many bytes; by default messages are not fragmented.
    ///
    /// It is for peers that cannot receive a large message in one piece. At least 24, rounded down to a multiple of 8.
    fragment_bytes(bytes: usize) => fragment_bytes = Count::new(bytes);

    /// The highest GIOP version of requests, from 1.0 to 1.2; 1.2 by default.
    max_giop_version(version: Version) => max_version = giop_version(version);
}

setters! {
    /// Which thread of the server reads requests and calls servants.
    dispatch(dispatch: DispatchStrategy) => config.dispatch = Some(dispatch);

    /// Scheduling of the threads that serve requests; by default they inherit it from the thread that runs the ORB.
    server_threads(threads: ThreadConfig) => config.server_threads = Some(threads);

    /// Scheduling of the watchdog, the thread that ends calls whose timeout has passed, and waits whose peer in shared memory is
    /// gone. If its priority is too low, both are late. What is not chosen here does not depend on the thread that starts it: it has
    /// the policy and the CPUs of the thread that built the ORB; and with lanes, or threads that set their CORBA priority, it is
    /// kept one native priority above the most urgent of them. That needs a free one: beside lanes or threads of 99 it has 99 too. Threads
    /// with a reservation are always more urgent.
    watchdog_thread(thread: ThreadConfig) => config.watchdog_thread = Some(thread);

    /// Scheduling of the thread that reads replies for all client threads with
    /// [`WaitStrategy::Reactor`](crate::WaitStrategy::Reactor), and of each connection's thread with
    /// [`WaitStrategy::ConnectionThread`](crate::WaitStrategy::ConnectionThread). Every call waits for this thread. The default is
    /// that of [`watchdog_thread`](Self::watchdog_thread).
    reactor_thread(thread: ThreadConfig) => config.reactor_thread = Some(thread);

    /// Timeout of a call, from its beginning to its result (RelativeRoundtripTimeout); 30 s by default, `None` for no timeout.
    ///
    /// It bounds all that the call does: resolving the host name, connecting, further endpoints, forwards, waiting for a
    /// shared connection, sending, waiting for the reply, and sending again on a new connection. Endpoints that may still be
    /// tried share the time that is left. The call fails with TIMEOUT, and the [`Cause`](crate::exception::Cause) says what it was
    /// doing; COMPLETED_NO means that nothing of the request was sent. A timeout of 200 ms or more counts from the kernel's last tick: the
    /// call may end up to one tick early, which is at most 10 ms.
    ///
    /// The default does not concern objects of this ORB that are called directly ([`collocation`](Self::collocation)). A timeout
    /// that you set, 30 s too, makes such calls go by a transport, because nothing can end a servant that runs on the thread of its caller;
    /// `None` does not.
    round_trip_timeout(timeout: Option<Duration>) => config.round_trip_timeout_ms = Some(timeout);

    /// How this ORB calls objects that it serves itself; on the calling thread by default, where that is possible.
    collocation(collocation: Collocation) => config.collocation = Some(collocation);

    /// What this ORB does about the deadlines of operations, and about requests that have expired; it enforces them by default.
    deadlines(deadlines: Deadlines) => config.deadlines = Some(deadlines);

    /// What starting a call ([`Call`](crate::Call)) does while as many started calls exist as may; by default it is refused with
    /// NO_RESOURCES. If it waits, other threads have to take the results: a thread that starts more calls than
    /// [`Limits::started_calls_max`](crate::Limits::started_calls_max) before it takes a result waits for itself, until the deadline,
    /// or for ever without one. A task that starts a call blocks the thread of its executor meanwhile, and with it the tasks that would take results.
    full_call_table(full: FullCallTable) => config.full_call_table = Some(full);

    /// How this ORB tells servers the deadlines of calls; by default as the host of the server permits.
    deadline_form(form: DeadlineForm) => config.deadline_form = Some(form);

    /// What threads of this ORB do before they sleep when they wait for a peer through shared memory; `Futex` by default.
    shared_memory_wait(wait: SharedMemoryWait) => config.shm_wait = Some(wait);

    /// Trusts processes of that group as peers by shared memory, beside those of the own user. The group is the primary one of the
    /// peer (SO_PEERCRED).
    shared_memory_group(group: u32) => config.shm_group = Some(Group(group));

    /// The clock that measures a servant's execution against its annotated worst case; CPU time by default. It concerns only
    /// operations with `@worst_case_time`.
    execution_clock(clock: ExecutionClock) => execution_clock = clock;

    /// What happens to a call whose servant executes longer than its annotated worst case; it is only counted by default. An adapter may
    /// choose otherwise ([`PoaPolicies::with_overrun`](crate::PoaPolicies::with_overrun)).
    overrun(overrun: Overrun) => config.overrun = Some(overrun);

    /// What happens to a call that arrives sooner than its annotated period allows; it is only counted by default. An adapter may choose
    /// otherwise ([`PoaPolicies::with_early_calls`](crate::PoaPolicies::with_early_calls)).
    early_calls(early: EarlyCalls) => config.early_calls = Some(early);

    /// The calls that an annotated period separates; by default all calls of a servant's operation. An adapter may choose otherwise
    /// ([`PoaPolicies::with_period_scope`](crate::PoaPolicies::with_period_scope)).
    period_scope(scope: PeriodScope) => config.period_scope = Some(scope);

    /// Scheduling of the thread that finds calls which execute too long. It exists only if overruns are not only counted. It must be more
    /// urgent than all calls with a worst case; without a choice it is, as the [watchdog](Self::watchdog_thread), and also above the
    /// threads that serve such calls. It is not more urgent than a thread of 99 or one with a reservation: their overruns are found only
    /// on another CPU.
    enforcing_thread(thread: ThreadConfig) => config.enforcing_thread = Some(thread);

    /// What makes TLS connections: `rtorb_tls::Tls`. Files and options (`tls_certificate` and others) go before it.
    secure_transport(transport: Arc<dyn SecureTransport>) => secure_transport = Some(transport);

    /// Makes the secure transport from the files that options and configuration files name: `rtorb_tls::transport`. Without it, such
    /// options are an error.
    security_provider(provider: SecurityProvider) => security_provider = Some(provider);

    /// Makes no connection over TCP without TLS. A call by a reference that offers none gets NO_PERMISSION, and nothing is sent; of several
    /// addresses, those without TLS are left out. It needs a secure transport, and excludes [`bidirectional`](Self::bidirectional).
    ///
    /// UNIX sockets, shared memory and calls of this ORB's own objects on the calling thread do not leave the host, and are possible. TCP to
    /// an address of this host is refused too: the address does not prove who listens there.
    require_tls() => config.tls_required = Some(true);

    /// The byte order of messages; this machine's by default. Tests use it to act as a peer with another byte order.
    byte_order(order: ByteOrder) => byte_order = Some(order);

    /// The native code set of `char` and `string` data; UTF-8 by default. References to objects of this ORB name it first, and calls ask
    /// for it first.
    ///
    /// In UTF-8 a `char` is ASCII. With ISO 8859-1, a server exchanges every `char` with a client that has ISO 8859-1, such as one of
    /// omniORB, and still takes UTF-8 from others.
    native_char_code_set(set: CharCodeSet) => config.native_char_code_set = Some(set);

    /// Runs threads with a CORBA priority under SCHED_RR instead of SCHED_FIFO.
    round_robin() => config.sched_policy = Some(RoundRobin(true));

    /// Sends the band of each new banded connection to the server (`_bind_priority_band`, service context RTCorbaPriorityRange).
    /// It costs one more round trip when the connection is opened. Servers without this extension work too.
    bind_priority_bands() => config.bind_priority_bands = Some(true);

    /// Offers servers to call this ORB's objects back over the connections that it opens to them, and accepts such offers of clients, in
    /// the form of TAO and JacORB (bidirectional GIOP). So a client is called back behind a firewall or NAT, to which no server can connect.
    /// It is BidirectionalPolicy BOTH for all adapters of the ORB that have no thread pool of their own.
    ///
    /// It needs [`DispatchStrategy::WorkerPool`], whose I/O thread reads these connections, and [`ConnectionStrategy::Exclusive`]. The
    /// callback page of the book (`docs/how-to/callbacks.md`) says what goes over such a connection, and which clients to trust.
    //= GIOP 1.2 §15.9
    //# Both ends have to allow bidirectional GIOP, by BidirectionalPolicy BOTH.
    bidirectional() => config.bidirectional = Some(true);

    /// Records the calls of this ORB's threads: the last calls of each thread, and counters of all. `rtorb top` and `rtorb trace` read them
    /// from outside at any time; [`recorder`](crate::recorder) says what is recorded.
    recorder() => config.recorder = Some(true);

    /// The mapping from CORBA priorities to packet marks, for connections whose protocol properties set
    /// `enable_network_priority`; by default the priorities that the mapping uses are spread over six treatments
    /// ([`NetworkPriorityTable::even`](crate::realtime::NetworkPriorityTable::even)).
    network_priority_mapping(mapping: impl NetworkPriorityMapping + 'static) => network_mapping = Some(Arc::new(mapping));

    /// The mapping from CORBA priorities to this host's (RTCORBA::PriorityMapping); [`NativeMapping`](crate::rt::NativeMapping) by default.
    priority_mapping(mapping: impl PriorityMapping + 'static) => config.priority_mapping = Some(Mapping(Arc::new(mapping)));

    /// Changes the priority of each incoming call before its servant runs, except on the threads of lanes.
    inbound_transform(transform: impl PriorityTransform + 'static) => transforms.inbound = Some(Arc::new(transform));

    /// Changes the priority of each outgoing call.
    outbound_transform(transform: impl PriorityTransform + 'static) => transforms.outbound = Some(Arc::new(transform));

    /// The lanes of the ORB's own pool, for [`DispatchStrategy::Lanes`], and the servant threads of
    /// [`DispatchStrategy::FilterChain`]; without lanes there is one, scheduled as `server_threads` says.
    lanes(lanes: impl IntoIterator<Item = ThreadpoolLane>) => config.lanes = Some(lanes.into_iter().collect());

    /// Continues without real-time scheduling if the host refuses it, and [warns](Self::on_warning) of that once.
    ///
    /// Without this option a refusal is an error: NO_PERMISSION, or [`OrbError::Refused`] for a thread of the ORB.
    best_effort() => config.best_effort = Some(true);

    /// Calls `hook` with each [`Warning`] of this ORB: print it, or write it to the log. The feature `tracing` has the same as events
    /// of the level WARN. Without either, warnings are lost: the library writes nothing to standard error.
    ///
    /// A hook runs on the thread that found the cause, so it should not wait. Each kind that the ORB itself finds is given once;
    /// those of a service and of a secure transport may come often. A panic in the hook ends only the hook.
    on_warning(hook: impl Fn(&Warning) + Send + Sync + 'static) => warning_hook = Some(Arc::new(hook));

    /// Calls `hook` for each call that exceeds an annotated limit of its operation. [`Orb::timing`] counts such calls with and
    /// without a hook.
    ///
    /// The hook runs on the thread of the call, at the call's priority: in a server after the reply is sent, in a client before
    /// the call returns. It delays that thread, so it should be short, and neither wait nor make calls: store the violation or
    /// count it. Several threads may run the hook at once. Calls that the hook makes through this ORB are counted, but do not
    /// run the hook again. A panic in the hook ends only the hook.
    on_timing_violation(hook: impl Fn(&TimingViolation) + Send + Sync + 'static) => timing_hook = Some(Arc::new(hook));

    /// Has an admission decide whether servants with times in IDL may be activated. A refused servant gets NO_RESOURCES with the
    /// reason, and is not called.
    servant_admission(admission: Arc<dyn ServantAdmission>) => servant_admission = Some(admission);
}

/// Makes the table of deferred replies, whose deadlines the watchdog of the ORB watches.
fn deferred_replies(client: &ClientCore) -> Arc<DeferredReplies> {
    let replies = Arc::new(DeferredReplies::new(&client.limits));
    let watched: Weak<dyn WatchedReplies> = Arc::<DeferredReplies>::downgrade(&replies);
    client.watchdog.watch_replies(watched);
    replies
}

/// Returns what reports refused clients to the warnings of the ORB.
fn reporter(warnings: &Arc<Warnings>) -> SecurityReport {
    let warnings = Arc::clone(warnings);
    Arc::new(move |text| warnings.warn(&Warning::Refused(text)))
}

/// Returns the endpoints, or a port of the loopback interface if there are none.
fn or_loopback(mut endpoints: Vec<ListenEndpoint>) -> Result<Vec<ListenEndpoint>, EndpointError> {
    if endpoints.is_empty() {
        endpoints.push("iiop://127.0.0.1:0".parse()?);
    }
    Ok(endpoints)
}

/// Checks a version of GIOP.
fn giop_version(version: Version) -> Result<Version, String> {
    if (Version::V1_0..=Version::V1_2).contains(&version) {
        Ok(version)
    } else {
        Err(format!("must be from 1.0 to 1.2, not {version}"))
    }
}

/// The reason why an ORB without TLS cannot require it.
const WITHOUT_TLS: &str = "this ORB has no TLS to require: give -ORBTlsCa FILE to a program that is built with rtorb-tls, or OrbBuilder::secure_transport";

/// The reason why an ORB that requires TLS has no bidirectional connections.
const BIDIRECTIONAL_IS_PLAIN: &str = "connections that carry calls of both ends (-ORBBidirectional) are plain, so calls would go out without TLS: choose one of both options";

/// Checks the strategies of an ORB with bidirectional connections.
fn check_bidirectional(strategies: Strategies) -> Result<(), String> {
    let is_read_by_all = strategies.dispatch == DispatchStrategy::WorkerPool;
    if is_read_by_all && strategies.connection == ConnectionStrategy::Exclusive {
        return Ok(());
    }
    Err(format!(
        "the I/O thread of dispatch worker_pool reads the connections that carry calls of both ends, and it needs no other sharing: choose \
         dispatch worker_pool and connection exclusive, not {} and {}",
        strategies.dispatch, strategies.connection
    ))
}

/// Returns true if the number of threads of a pool applies to the dispatch strategy.
fn has_pool_threads(strategies: &Strategies) -> bool {
    let dispatch = strategies.dispatch;
    matches!(
        dispatch,
        DispatchStrategy::WorkerPool | DispatchStrategy::LeaderFollowers
    )
}

/// Makes the state of a dispatch strategy. `chain` has the filters and the lanes.
fn dispatch(strategy: DispatchStrategy, threads: usize, chain: FilterChain) -> Dispatch {
    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
    let structure = match strategy {
        DispatchStrategy::ThreadPerConnection => return Dispatch::ThreadPerConnection,
        DispatchStrategy::Reactive => Structure::Reactive,
        DispatchStrategy::WorkerPool => Structure::WorkerPool { threads },
        DispatchStrategy::LeaderFollowers => Structure::LeaderFollowers { threads },
        DispatchStrategy::FilterChain => Structure::FilterChain(Arc::new(chain)),
        DispatchStrategy::Lanes => Structure::Lanes(chain.lanes),
        DispatchStrategy::ThreadPerRequest => Structure::ThreadPerRequest,
    };
    Dispatch::Pool(OwnPool::new(structure))
}

/// The default timeout of a call.
const ROUND_TRIP_TIMEOUT: Duration = Duration::from_secs(30);

/// The default number of threads of a pool.
const POOL_THREADS: usize = 4;

/// The default timeout of opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

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
            .field("config", &self.config)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

//! The configuration of an ORB: the one list of what code, files and command lines can set.

use super::builder::OrbError;
use super::config_file::{
    bands, call_timeout, client_protocols, code_set, lane_endpoints, lanes, threads,
};
use super::group::Group;
use super::options::{self, ConfigOption};
use super::ranges::{Count, Milliseconds, Within};
use crate::dispatch::pool::endpoints::LaneEndpoints;
use crate::endpoint::ListenEndpoint;
use crate::limits::{Limits, QUEUED_REQUESTS_MOST};
use crate::realtime::{
    ContinuousMapping, LinearMapping, NativeMapping, PriorityBand, PriorityMapping, Protocol,
    Reservation, ThreadpoolLane, is_band,
};
use crate::recorder;
use crate::security::{ClientCertificates, SecurityFiles};
use crate::strategies::{
    Collocation, ConnectionStrategy, DeadlineForm, Deadlines, DispatchStrategy, FullCallTable,
    RequestOrder, SharedMemoryWait, Strategies, WaitStrategy,
};
use crate::suggest;
use crate::timing::{EarlyCalls, Overrun, PeriodScope};
use core::str::FromStr;
use rtorb_os::byte_rings::{CAPACITY_MAX, CAPACITY_MIN};
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::cdr::CharCodeSet;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Declares the settings. Each has the name of its key in a file and, behind `=>`, its `-ORB` option with the form of a value, if it
/// has an option. Its comment stands on the page of options.
macro_rules! settings {
    (
        $(#[$of_struct:meta])*
        $name:ident {
            $($(#[$of_key:meta])* $key:ident: $type:ty $(=> $option:ident $value:literal by $reader:ident)?,)*
        }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$of_key])* pub(super) $key: $type,)*
        }

        impl Overlay for $name {
            fn overlay(&mut self, later: Self) {
                $(self.$key.overlay(later.$key);)*
            }
        }

        /// The settings that are options of a command line.
        pub(super) const OPTIONS: &[ConfigOption] = &[$($(ConfigOption {
            name: stringify!($option),
            value: $value,
            key: stringify!($key),
            read: options::$reader,
        },)?)*];
    };
}

settings! {
    /// The settings of an ORB that files and command lines can make; what is not set keeps its value.
    ///
    /// [`OrbBuilder::config_file`](super::OrbBuilder::config_file) reads a file of them. A program that has its own file can
    /// contain them: they deserialize from any format that describes itself.
    ///
    /// ```
    /// #[derive(serde::Deserialize)]
    /// struct Plant {
    ///     orb: rtorb::OrbConfig,
    /// }
    /// let plant: Plant = toml::from_str("[orb]\ndispatch = 'reactive'").expect("a right file");
    /// let orb = rtorb::Orb::builder().config(plant.orb).build()?;
    /// assert_eq!(orb.strategies().dispatch, rtorb::DispatchStrategy::Reactive);
    /// # Ok::<(), rtorb::OrbError>(())
    /// ```
    OrbConfig {
        /// An architecture: the strategies of one ORB that was measured.
        preset: Option<Strategies> => Preset "default|corbaplus|minicool|mt_orbix|tao" by text,
        /// How calls share connections. It replaces that of a preset from the same source, as the next two do.
        connection: Option<ConnectionStrategy> => Connection "exclusive|multiplexed|banded" by text,
        /// What a client thread does until its reply arrives.
        wait: Option<WaitStrategy> => Wait "read|reactor|leader_followers|connection_thread" by text,
        /// Which threads of a server read requests and call servants.
        dispatch: Option<DispatchStrategy>
            => Dispatch "thread_per_connection|reactive|worker_pool|leader_followers|filter_chain|lanes|thread_per_request" by text,
        /// Threads of `worker_pool` and `leader_followers`.
        pool_threads: Option<PoolThreads> => PoolThreads "N" by number,
        /// The lanes of dispatch `lanes`. `filter_chain` uses their static threads, other strategies use none. An order is `fifo`,
        /// `fifo_shedding`, `earliest_deadline`, `least_laxity` or `maximum_urgency`.
        #[serde(deserialize_with = "lanes")]
        lanes: Option<Vec<ThreadpoolLane>> => Lanes "PRIORITY:STATIC[+DYNAMIC][/ORDER],..." by lanes,
        /// Bands of a client: for calls to objects with a priority model; with `banded`, for all calls.
        #[serde(deserialize_with = "bands")]
        bands: Option<Vec<PriorityBand>> => Bands "LOW-HIGH,..." by bands,
        /// The protocols of a client (`tcp`, `unix`, `shm`), the preferred one first. `unix` has only the sizes, and `shm` has `wait`.
        #[serde(deserialize_with = "client_protocols")]
        client_protocols: Option<Vec<Protocol>>,
        /// Whether a client sends the band of each new connection to the server.
        bind_priority_bands: Option<bool> => BindPriorityBands "yes|no" by yes_or_no,
        /// Whether connections over TCP carry calls of both ends, so that a client behind a firewall is called back. It needs dispatch `worker_pool` and connection `exclusive`.
        bidirectional: Option<bool> => Bidirectional "yes|no" by yes_or_no,
        /// Whether calls are recorded, for `rtorb top` and `rtorb trace`: the last calls of each thread, and counters of all.
        recorder: Option<bool> => Recorder "yes|no" by yes_or_no,
        /// The size of the ring of each thread for copies of whole calls, for `rtorb record --in-lane`, in bytes. It starts the recorder too. The first ORB of a process that sets it makes the rings.
        record_calls: Option<CallRingBytes> => RecordCalls "N" by number,
        /// How CORBA priorities become priorities of the host.
        priority_mapping: Option<Mapping> => PriorityMapping "native|linear|continuous" by text,
        /// The policy of threads with a CORBA priority.
        sched_policy: Option<RoundRobin> => SchedPolicy "SCHED_FIFO|SCHED_RR" by text,
        /// Whether to continue if the host refuses real-time scheduling.
        best_effort: Option<bool> => BestEffort "yes|no" by yes_or_no,
        /// The native code set of `char` and `string` data. A server that exchanges `char` above ASCII needs `ISO-8859-1`, or
        /// `ISO-8859-15` for the Euro sign.
        #[serde(deserialize_with = "code_set")]
        native_char_code_set: Option<CharCodeSet> => NativeCharCodeSet "UTF-8|ISO-8859-1|ISO-8859-15" by text,
        /// The longest time until a connection is open, resolving the host name included.
        connect_timeout_ms: Option<ConnectTimeout> => ConnectTimeoutMs "N" by number,
        /// Whether deadlines of operations bound their calls and expired requests are refused, or both are only counted.
        deadlines: Option<Deadlines> => Deadlines "enforce|count" by text,
        /// How a client tells a server the deadline of a call: `auto` sends an end time to servers of the same host, and remaining time to others.
        deadline_form: Option<DeadlineForm> => DeadlineForm "auto|end_time|remaining_time" by text,
        /// What starting a call does while as many started calls exist as may (`started_calls_max`): it is refused, or waits until its deadline.
        full_call_table: Option<FullCallTable> => FullCallTable "refuse|wait" by text,
        /// How objects of the same ORB are called: on the calling thread, or by a transport.
        collocation: Option<Collocation> => Collocation "direct|transport" by text,
        /// The longest time of a call, connecting included. 0 is no limit.
        #[serde(deserialize_with = "call_timeout")]
        round_trip_timeout_ms: Option<Option<Duration>> => RoundTripTimeoutMs "N" by number,
        /// Shared memory: what a thread does before it sleeps.
        shm_wait: Option<SharedMemoryWait> => ShmWait "futex|yield|spin|adaptive" by text,
        /// Shared memory: the size of a ring of this server.
        shm_ring_bytes: Option<RingBytes> => ShmRingBytes "N" by number,
        /// Shared memory: a trusted group, by number or name.
        shm_group: Option<Group> => ShmGroup "GROUP" by text,
        /// TLS: the file of this program's certificate, in PEM, and behind it those that lead to its authority. A client needs one only where the server asks for it.
        tls_certificate: Option<PathBuf> => TlsCertificate "FILE" by text,
        /// TLS: the file of the private key of the certificate, in PEM.
        tls_key: Option<PathBuf> => TlsKey "FILE" by text,
        /// TLS: the file with the certificates of the trusted authorities, in PEM.
        tls_ca: Option<PathBuf> => TlsCa "FILE" by text,
        /// TLS: the file with lists of revoked certificates, in PEM.
        tls_crl: Option<PathBuf> => TlsCrl "FILE" by text,
        /// TLS: whether lists of revoked certificates count also after the time at which the next one was due. Without it, no certificate of such an authority is accepted then.
        tls_expired_crl: Option<bool> => TlsExpiredCrl "yes|no" by yes_or_no,
        /// TLS: whether this ORB makes no connection over TCP without it. UNIX sockets, shared memory and calls of its own objects stay on this host, and are possible.
        tls_required: Option<bool> => TlsRequired "yes|no" by yes_or_no,
        /// TLS: what a server asks of its clients.
        tls_clients: Option<ClientCertificates> => TlsClients "required|optional|none" by text,
        /// Endpoints of the server, and of the first lane of its own pool. `ssliop://HOST:PORT` is one over TLS. `iiop://HOST:PORT/publish=HOST:PORT` puts that address into references, `portspan=N` takes the first free one of N ports, and `&` joins such options. `inherited://NAME` takes the sockets with that name which a service manager passed (socket activation).
        listen: Option<Vec<ListenEndpoint>> => ListenEndpoints "ENDPOINT[;ENDPOINT...]" by endpoints,
        /// Endpoint of a lane: pool and lane, `*` is any. The option accepts TAO's form with two arguments too.
        #[serde(deserialize_with = "lane_endpoints")]
        lane_endpoints: Option<LaneEndpoints> => LaneListenEndpoints "POOL:LANE=ENDPOINT" by lane_endpoints,
        /// The server's threads without a lane. The priority is the host's.
        #[serde(deserialize_with = "threads")]
        server_threads: Option<ThreadConfig>,
        /// The thread that ends calls whose time is over.
        #[serde(deserialize_with = "threads")]
        watchdog_thread: Option<ThreadConfig>,
        /// What happens to a call that executes longer than its `@worst_case_time`. The priority is the host's.
        overrun: Option<Overrun> => Overrun "count|demote:PRIORITY|stop" by text,
        /// What happens to a call that arrives sooner than its `@period` allows. `MS` is the longest delay, and needs dispatch `thread_per_connection`.
        early_calls: Option<EarlyCalls> => EarlyCalls "count|refuse|delay:MS" by text,
        /// The calls that a `@period` separates: all calls of an operation of a servant, or those of each connection.
        period_scope: Option<PeriodScope> => PeriodScope "servant|connection" by text,
        /// The thread that finds calls that execute too long, for `demote` and `stop`.
        #[serde(deserialize_with = "threads")]
        enforcing_thread: Option<ThreadConfig>,
        /// The thread that reads replies for all (`reactor`), or for a connection (`connection_thread`).
        #[serde(deserialize_with = "threads")]
        reactor_thread: Option<ThreadConfig>,
        /// Names of objects for `resolve_initial_references`.
        initial_references: BTreeMap<String, String> => InitRef "NAME=REFERENCE" by reference,
        /// The fields of `rtorb::Limits`; times in `_ms`.
        limits: LimitConfig,
    }
}

/// The number of threads of a pool.
pub(super) type PoolThreads = Count<1, { u32::MAX as u64 }>;
/// The bytes of a ring of shared memory.
pub(super) type RingBytes = Count<{ CAPACITY_MIN as u64 }, { CAPACITY_MAX as u64 }>;
/// The bytes of a ring for copies of calls.
pub(super) type CallRingBytes =
    Count<{ recorder::RING_BYTES_MIN as u64 }, { recorder::RING_BYTES_MAX as u64 }>;
/// The timeout of opening a connection. Zero would fail at once over TCP, and has no meaning for a UNIX socket.
pub(super) type ConnectTimeout = Milliseconds<1>;

impl OrbConfig {
    /// Replaces the settings that `later` has. A list replaces a list; initial references are added; a preset replaces all strategies
    /// that were set before.
    pub(super) fn apply(&mut self, later: Self) {
        if let Some(preset) = later.preset {
            self.set_strategies(preset);
        }
        self.overlay(later);
    }

    /// Returns the files of TLS.
    pub(super) fn security_files(&self) -> SecurityFiles {
        SecurityFiles {
            certificate: self.tls_certificate.clone(),
            key: self.tls_key.clone(),
            authorities: self.tls_ca.clone(),
            revocations: self.tls_crl.clone(),
            accepts_expired_revocations: self.tls_expired_crl == Some(true),
            clients: self.tls_clients.unwrap_or_default(),
        }
    }

    /// Replaces all strategies.
    pub(super) fn set_strategies(&mut self, strategies: Strategies) {
        self.preset = Some(strategies);
        (self.connection, self.wait, self.dispatch) = (None, None, None);
    }

    /// The strategies: those of the preset, unless one is set alone.
    ///
    /// # Errors
    /// [`OrbError::Option`] for a wait strategy that does not work with the connection strategy. Only the result of all sources is
    /// checked: a file may name the connection strategy, and the command line the wait strategy.
    pub(super) fn strategies(&self) -> Result<Strategies, OrbError> {
        let preset = self.preset.unwrap_or_default();
        let dispatch = self.dispatch.unwrap_or(preset.dispatch);
        let connection = self.connection.unwrap_or(preset.connection);
        let wait = self.wait.unwrap_or(preset.connection.wait());
        let both = connection
            .with_wait(wait)
            .ok_or_else(|| OrbError::Option {
                option: format!("wait strategy {wait} with connection strategy {connection}"),
                reason: "no other thread waits on a thread's own connection: choose the wait strategy read, or the connection \
                         strategy multiplexed or banded"
                    .to_owned(),
            })?;
        Ok(Strategies::new(both, dispatch))
    }
}

/// Settings that a later source replaces.
pub(super) trait Overlay {
    /// Replaces what `later` sets.
    fn overlay(&mut self, later: Self);
}

impl<T> Overlay for Option<T> {
    fn overlay(&mut self, later: Self) {
        if later.is_some() {
            *self = later;
        }
    }
}

impl Overlay for BTreeMap<String, String> {
    fn overlay(&mut self, later: Self) {
        self.extend(later);
    }
}

/// Declares the limits with their ranges, which are the same in a file and in code. A file has a time by its name with `_ms`.
macro_rules! limits {
    ($($(#[$of_field:meta])* $field:ident: $type:ty,)*) => {
        /// The limits that a file can set.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(super) struct LimitConfig {
            $($(#[$of_field])* $field: Option<$type>,)*
        }

        impl Overlay for LimitConfig {
            fn overlay(&mut self, later: Self) {
                $(self.$field.overlay(later.$field);)*
            }
        }

        impl LimitConfig {
            /// Replaces the limits that are set.
            pub(super) fn replace(&self, limits: &mut Limits) {
                $(limits.$field = self.$field.map_or(limits.$field, Within::get);)*
            }
        }

        /// Returns the limits that are out of range, with the reasons.
        pub(super) fn limits_out_of_range(limits: &Limits) -> Vec<(&'static str, String)> {
            // A field that is not declared here does not compile.
            let Limits { $($field),* } = limits;
            let all = [$((concat!("limits.", stringify!($field)), <$type>::new(*$field).err())),*];
            let wrong = all.into_iter().filter_map(|(name, reason)| Some((name, reason?)));
            wrong.collect()
        }
    };
}

limits! {
    message_bytes_max: Count<1>,
    connections_max: Count<0>,
    connections_per_address_max: Count<0>,
    objects_max: Count<1>,
    adapters_max: Count<1>,
    bound_keys_max: Count<0>,
    thread_connections_max: Count<1>,
    shared_connections_max: Count<1>,
    started_calls_max: Count<0>,
    deferred_replies_max: Count<0>,
    deferred_replies_per_connection_max: Count<0>,
    fragment_chains_max: Count<0>,
    pool_threads_max: Count<0>,
    #[serde(rename = "idle_thread_time_ms")]
    idle_thread_time: Milliseconds<0, { u64::MAX }>,
    queued_requests_max: Count<1, { QUEUED_REQUESTS_MOST as u64 }>,
    client_periods_max: Count<1>,
    forwards_max: Count<0>,
    collocated_depth_max: Count<1>,
    #[serde(rename = "idle_buffer_time_ms")]
    idle_buffer_time: Milliseconds<10>,
    spare_buffers_max: Count<0>,
    #[serde(rename = "receive_timeout_ms")]
    receive_timeout: Milliseconds<10>,
    #[serde(rename = "deferred_reply_time_ms")]
    deferred_reply_time: Milliseconds<0>,
    // For the system, zero means no timeout.
    #[serde(rename = "send_timeout_ms")]
    send_timeout: Milliseconds<1>,
    stranger_turns_max: Count<1>,
    #[serde(rename = "stranger_period_ms")]
    stranger_period: Milliseconds<1, 1000>,
}

/// A priority mapping that options can name; [`NativeMapping`] by default.
#[derive(Clone, Debug)]
pub(super) struct Mapping(pub(super) Arc<dyn PriorityMapping>);

impl Default for Mapping {
    fn default() -> Self {
        Self(Arc::new(NativeMapping))
    }
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            // TAO calls it direct.
            "native" | "direct" => Ok(Self::default()),
            "linear" => Ok(Self(Arc::new(LinearMapping))),
            "continuous" => Ok(Self(Arc::new(ContinuousMapping))),
            _ => {
                let known = ["native", "linear", "continuous"];
                Err(suggest::unknown(text, "priority mapping", &known))
            }
        }
    }
}

/// True if threads with a CORBA priority run under SCHED_RR, false for SCHED_FIFO.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundRobin(pub(super) bool);

impl FromStr for RoundRobin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "SCHED_FIFO" => Ok(Self(false)),
            "SCHED_RR" => Ok(Self(true)),
            _ => {
                let what = "policy for threads with a priority";
                Err(suggest::unknown(text, what, &["SCHED_FIFO", "SCHED_RR"]))
            }
        }
    }
}

//= RT-CORBA 1.2 §Threadpools
//# The lanes of a pool have different priorities, and each has static threads.
/// Checks that there are lanes, that each has a static thread, and that their priorities differ.
pub(super) fn check_lanes(lanes: &[ThreadpoolLane]) -> Result<(), String> {
    if lanes.is_empty() {
        return Err("there is no lane; name at least one".to_owned());
    }
    let mut priorities = BTreeSet::new();
    for lane in lanes {
        let priority = lane.lane_priority;
        if lane.static_threads == 0 {
            return Err(format!(
                "the lane of priority {priority} has no static thread; give it at least 1"
            ));
        }
        if lane.order != RequestOrder::Fifo && lane.dynamic_threads > 0 {
            return Err(format!(
                "the lane of priority {priority} has the order {}, with which it has no dynamic threads: give it 0 of them",
                lane.order
            ));
        }
        if let Some(reservation) = &lane.reservation {
            check_reservation(lane, reservation)?;
        }
        if !priorities.insert(priority) {
            return Err(format!(
                "two lanes have priority {priority}; give each its own, or one of them more threads"
            ));
        }
    }
    Ok(())
}

fn check_reservation(lane: &ThreadpoolLane, reservation: &Reservation) -> Result<(), String> {
    let priority = lane.lane_priority;
    if lane.order != RequestOrder::Fifo || lane.dynamic_threads > 0 {
        return Err(format!(
            "the lane of priority {priority} has a reservation, which neither levels nor dynamic threads have: choose the order fifo, \
             and 0 dynamic threads"
        ));
    }
    if !reservation.is_valid() {
        let periods = Reservation::PERIODS;
        return Err(format!(
            "the reservation of the lane of priority {priority} is {:?} within {:?} of {:?}; choose 1.024µs <= runtime <= deadline \
             <= period, and a period from {:?} to {:?}",
            reservation.runtime,
            reservation.deadline,
            reservation.period,
            periods.start(),
            periods.end(),
        ));
    }
    Ok(())
}

/// Checks that there are bands, and that each contains a priority.
pub(super) fn check_bands(bands: &[PriorityBand]) -> Result<(), String> {
    if bands.is_empty() {
        return Err("there is no band; name at least one".to_owned());
    }
    match bands.iter().find(|band| !is_band(band)) {
        Some(PriorityBand { low, high }) => Err(format!(
            "{low} to {high} is no band of priorities; write the less urgent one first, both from 0 to 32767"
        )),
        None => Ok(()),
    }
}

/// Checks that no protocol is listed twice.
pub(super) fn check_protocols(protocols: &[Protocol]) -> Result<(), String> {
    if Protocol::is_repeated(protocols) {
        return Err("a protocol is there twice; name each once, the best one first".to_owned());
    }
    Ok(())
}

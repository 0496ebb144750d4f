//! Settings from a configuration file or a command line. A setting that is not named there keeps its value.

use super::builder::{OrbBuilder, OrbError};
use super::config_file::{
    bands, client_protocols, initial_references, lane_endpoints, lanes, listen, text, threads,
};
use super::group::Group;
use crate::dispatch::pool::endpoints::LaneEndpoints;
use crate::endpoint::ListenEndpoint;
use crate::limits::Limits;
use crate::realtime::{
    ContinuousMapping, LinearMapping, NativeMapping, Policy, PriorityBand, PriorityMapping,
    Protocol, ThreadpoolLane, is_band,
};
use crate::strategies::{
    Collocation, ConnectionStrategy, DispatchStrategy, SharedMemoryWait, Strategies, WaitStrategy,
};
use core::num::{NonZeroU64, NonZeroUsize};
use core::str::FromStr;
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::cdr::CharCodeSet;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The settings of one file or command line. The fields have the names of a file's keys. Their comments stand on the page of options.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    /// An architecture: the strategies of one ORB that was measured.
    #[serde(deserialize_with = "text")]
    pub(super) preset: Option<Strategies>,
    /// How calls share connections. It replaces that of a preset from the same source, as the next two do.
    #[serde(deserialize_with = "text")]
    pub(super) connection: Option<ConnectionStrategy>,
    /// What a client thread does until its reply arrives.
    #[serde(deserialize_with = "text")]
    pub(super) wait: Option<WaitStrategy>,
    /// Which threads of a server read requests and call servants.
    #[serde(deserialize_with = "text")]
    pub(super) dispatch: Option<DispatchStrategy>,
    /// Threads of `worker_pool` and `leader_followers`.
    pub(super) pool_threads: Option<NonZeroUsize>,
    /// The lanes of dispatch `lanes`. `filter_chain` uses their static threads, other strategies use none.
    #[serde(deserialize_with = "lanes")]
    pub(super) lanes: Option<Vec<ThreadpoolLane>>,
    /// Bands of a client: for calls to objects with a priority model; with `banded`, for all calls.
    #[serde(deserialize_with = "bands")]
    pub(super) bands: Option<Vec<PriorityBand>>,
    /// The protocols of a client (`tcp`, `unix`, `shm`), the preferred one first. `unix` has only the sizes, and `shm` has `wait`.
    #[serde(deserialize_with = "client_protocols")]
    pub(super) client_protocols: Option<Vec<Protocol>>,
    /// Whether a client sends the band of each new connection to the server.
    pub(super) bind_priority_bands: Option<bool>,
    /// How CORBA priorities become priorities of the host.
    #[serde(deserialize_with = "text")]
    pub(super) priority_mapping: Option<Mapping>,
    /// The policy of threads with a CORBA priority.
    #[serde(deserialize_with = "text")]
    pub(super) sched_policy: Option<RoundRobin>,
    /// Whether to continue if the host refuses real-time scheduling.
    pub(super) best_effort: Option<bool>,
    /// The native code set of `char` and `string` data. A server that exchanges `char` above ASCII needs `ISO-8859-1`.
    #[serde(deserialize_with = "text")]
    pub(super) native_char_code_set: Option<CharCodeSet>,
    /// The longest time until a connection is open, resolving the host name included.
    pub(super) connect_timeout_ms: Option<NonZeroU64>,
    /// How objects of the same ORB are called: on the calling thread, or by a transport.
    #[serde(deserialize_with = "text")]
    pub(super) collocation: Option<Collocation>,
    /// The longest time of a call, connecting included. 0 waits for ever.
    pub(super) round_trip_timeout_ms: Option<u64>,
    /// Shared memory: what a thread does before it sleeps.
    #[serde(deserialize_with = "text")]
    pub(super) shm_wait: Option<SharedMemoryWait>,
    /// Shared memory: the size of a ring of this server.
    pub(super) shm_ring_bytes: Option<NonZeroUsize>,
    /// Shared memory: a trusted group, by number or name.
    pub(super) shm_group: Option<Group>,
    /// Endpoints of the server, and of the first lane of its own pool. `iiop://HOST:PORT/publish=HOST:PORT` puts that address into references, `portspan=N` takes the first free one of N ports, and `&` joins such options.
    #[serde(deserialize_with = "listen")]
    pub(super) listen: Option<Vec<ListenEndpoint>>,
    /// Endpoint of a lane: pool and lane, `*` is any. The option accepts TAO's form with two arguments too.
    #[serde(deserialize_with = "lane_endpoints")]
    pub(super) lane_endpoints: Option<LaneEndpoints>,
    /// The server's threads without a lane. The priority is the host's.
    #[serde(deserialize_with = "threads")]
    pub(super) server_threads: Option<ThreadConfig>,
    /// The thread that ends calls whose time is over.
    #[serde(deserialize_with = "threads")]
    pub(super) watchdog_thread: Option<ThreadConfig>,
    /// The thread that reads replies for all (`reactor`), or for a connection (`connection_thread`).
    #[serde(deserialize_with = "threads")]
    pub(super) reactor_thread: Option<ThreadConfig>,
    /// Names of objects for `resolve_initial_references`.
    #[serde(deserialize_with = "initial_references")]
    pub(super) initial_references: Vec<(String, String)>,
    /// The fields of `rtorb::Limits`; times in `_ms`.
    pub(super) limits: LimitSettings,
}

impl Settings {
    /// Applies the settings of several files and a command line; a later setting replaces an earlier one.
    ///
    /// # Errors
    /// [`OrbError::Option`] for strategies that do not work together. Only the combined result is checked: a file may name
    /// the connection strategy, and the command line the wait strategy.
    pub(super) fn apply_all(
        places: Vec<Self>,
        mut builder: OrbBuilder,
    ) -> Result<OrbBuilder, OrbError> {
        let mut connection = builder.strategies.connection;
        let mut wait = connection.wait();
        for place in places {
            if let Some(preset) = place.preset {
                builder.strategies = preset;
                (connection, wait) = (preset.connection, preset.connection.wait());
            }
            connection = place.connection.unwrap_or(connection);
            wait = place.wait.unwrap_or(wait);
            replace(&mut builder.strategies.dispatch, place.dispatch);
            builder = place.apply(builder);
        }
        let connection = connection
            .with_wait(wait)
            .ok_or_else(|| OrbError::Option {
                option: format!("wait strategy {wait} with connection strategy {connection}"),
                reason: "no other thread waits on a thread's own connection: choose the wait strategy read, or the connection \
                         strategy multiplexed or banded"
                    .to_owned(),
            })?;
        Ok(builder.connection(connection))
    }

    /// Applies these settings, except the strategies.
    fn apply(self, mut builder: OrbBuilder) -> OrbBuilder {
        let bands = self.bands.map(Policy::PriorityBandedConnection);
        let protocols = self.client_protocols.map(Policy::ClientProtocol);
        for policy in bands.into_iter().chain(protocols) {
            let is_other = |other: &Policy| other.name() != policy.name();
            builder.client_policies.retain(is_other);
            builder.client_policies.push(policy);
        }
        for (name, reference) in self.initial_references {
            builder = builder.initial_reference(&name, &reference);
        }
        let limits = self.limits.over(builder.limits.clone());
        builder = builder.limits(limits);
        if let Some(ms) = self.connect_timeout_ms {
            builder = builder.connect_timeout(Duration::from_millis(ms.get()));
        }
        if let Some(bytes) = self.shm_ring_bytes {
            builder = builder.shared_memory_ring_bytes(bytes.get());
        }
        replace(&mut builder.shared_memory.wait, self.shm_wait);
        let group = self.shm_group.map(|group| Some(group.0));
        replace(&mut builder.shared_memory.group, group);
        let timeout = |ms| (ms > 0).then(|| Duration::from_millis(ms));
        replace(
            &mut builder.round_trip_timeout,
            self.round_trip_timeout_ms.map(|ms| Some(timeout(ms))),
        );
        replace(&mut builder.collocation, self.collocation);
        replace(&mut builder.native_char_code_set, self.native_char_code_set);
        replace(&mut builder.best_effort, self.best_effort);
        replace(
            &mut builder.round_robin,
            self.sched_policy.map(|policy| policy.0),
        );
        replace(
            &mut builder.mapping,
            self.priority_mapping.map(|mapping| mapping.0),
        );
        replace(
            &mut builder.pool_threads,
            self.pool_threads.map(NonZeroUsize::get),
        );
        replace(&mut builder.binds_priority_bands, self.bind_priority_bands);
        replace(&mut builder.lanes, self.lanes);
        replace(&mut builder.listen, self.listen);
        replace(&mut builder.lane_endpoints, self.lane_endpoints);
        replace(&mut builder.server_threads, self.server_threads);
        replace(&mut builder.watchdog_thread, self.watchdog_thread);
        replace(&mut builder.reactor_thread, self.reactor_thread);
        builder
    }
}

/// Replaces an option if there is a setting for it.
fn replace<T>(option: &mut T, setting: Option<T>) {
    if let Some(setting) = setting {
        *option = setting;
    }
}

/// A priority mapping that options can name.
#[derive(Debug)]
pub(super) struct Mapping(Arc<dyn PriorityMapping>);

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            // TAO calls it direct.
            "native" | "direct" => Ok(Self(Arc::new(NativeMapping))),
            "linear" => Ok(Self(Arc::new(LinearMapping))),
            "continuous" => Ok(Self(Arc::new(ContinuousMapping))),
            _ => Err(format!(
                "`{text}` is no priority mapping; there are native, linear, continuous"
            )),
        }
    }
}

/// True if threads with a CORBA priority run under SCHED_RR, false for SCHED_FIFO.
#[derive(Debug)]
pub(super) struct RoundRobin(bool);

impl FromStr for RoundRobin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "SCHED_FIFO" => Ok(Self(false)),
            "SCHED_RR" => Ok(Self(true)),
            _ => Err(format!(
                "`{text}` is no policy for threads with a priority; there are SCHED_FIFO, SCHED_RR"
            )),
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
        if !priorities.insert(priority) {
            return Err(format!(
                "two lanes have priority {priority}; give each its own, or one of them more threads"
            ));
        }
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

macro_rules! limit_settings {
    ($($name:ident),*) => {
        /// The limits in a file.
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(super) struct LimitSettings {
            $($name: Option<NonZeroUsize>,)*
            send_timeout_ms: Option<u64>,
            idle_thread_time_ms: Option<u64>,
            idle_buffer_time_ms: Option<u64>,
        }

        impl LimitSettings {
            fn over(self, limits: Limits) -> Limits {
                Limits {
                    $($name: self.$name.map_or(limits.$name, NonZeroUsize::get),)*
                    send_timeout: self.send_timeout_ms.map_or(limits.send_timeout, Duration::from_millis),
                    idle_thread_time: self
                        .idle_thread_time_ms
                        .map_or(limits.idle_thread_time, Duration::from_millis),
                    idle_buffer_time: self
                        .idle_buffer_time_ms
                        .map_or(limits.idle_buffer_time, Duration::from_millis),
                }
            }
        }
    };
}

limit_settings! {
    message_octets_max, connections_max, objects_max, adapters_max, bound_keys_max, thread_connections_max, shared_connections_max,
    fragment_chains_max, forwards_max, collocated_depth_max, pool_threads_max, queued_requests_max, spare_buffers_max
}

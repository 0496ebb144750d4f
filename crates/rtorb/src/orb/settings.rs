//! Settings from a configuration file or a command line. A setting that is not named there keeps its value.

use super::builder::{OrbBuilder, OrbError};
use super::config_file::{
    bands, client_protocols, initial_references, lane_endpoints, lanes, listen, text, threads,
};
use crate::dispatch::pool::endpoints::LaneEndpoints;
use crate::endpoint::ListenEndpoint;
use crate::limits::Limits;
use crate::realtime::{
    ContinuousMapping, LinearMapping, NativeMapping, Policy, PriorityBand, Protocol, ThreadpoolLane,
};
use crate::strategies::{ConnectionStrategy, DispatchStrategy, Strategies, WaitStrategy};
use core::num::{NonZeroU64, NonZeroUsize};
use core::str::FromStr;
use rtorb_os::thread::ThreadConfig;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// The settings of one file or command line. The fields have the names of a file's keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    #[serde(deserialize_with = "text")]
    pub(super) preset: Option<Strategies>,
    #[serde(deserialize_with = "text")]
    pub(super) connection: Option<ConnectionStrategy>,
    #[serde(deserialize_with = "text")]
    pub(super) wait: Option<WaitStrategy>,
    #[serde(deserialize_with = "text")]
    pub(super) dispatch: Option<DispatchStrategy>,
    pub(super) pool_threads: Option<NonZeroUsize>,
    #[serde(deserialize_with = "lanes")]
    pub(super) lanes: Option<Vec<ThreadpoolLane>>,
    #[serde(deserialize_with = "bands")]
    pub(super) bands: Option<Vec<PriorityBand>>,
    #[serde(deserialize_with = "client_protocols")]
    pub(super) client_protocols: Option<Vec<Protocol>>,
    pub(super) bind_priority_bands: Option<bool>,
    #[serde(deserialize_with = "text")]
    pub(super) priority_mapping: Option<Mapping>,
    #[serde(deserialize_with = "text")]
    pub(super) sched_policy: Option<RealTimePolicy>,
    pub(super) best_effort: Option<bool>,
    pub(super) connect_timeout_ms: Option<NonZeroU64>,
    /// 0 waits for ever.
    pub(super) round_trip_timeout_ms: Option<u64>,
    #[serde(deserialize_with = "listen")]
    pub(super) listen: Option<Vec<ListenEndpoint>>,
    #[serde(deserialize_with = "lane_endpoints")]
    pub(super) lane_endpoints: Option<LaneEndpoints>,
    #[serde(deserialize_with = "threads")]
    pub(super) server_threads: Option<ThreadConfig>,
    #[serde(deserialize_with = "threads")]
    pub(super) watchdog_thread: Option<ThreadConfig>,
    #[serde(deserialize_with = "threads")]
    pub(super) reactor_thread: Option<ThreadConfig>,
    #[serde(deserialize_with = "initial_references")]
    pub(super) initial_references: Vec<(String, String)>,
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
            if let Some(dispatch) = place.dispatch {
                builder = builder.dispatch(dispatch);
            }
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
    fn apply(self, builder: OrbBuilder) -> OrbBuilder {
        let mut builder = self.apply_real_time(builder);
        if let Some(threads) = self.pool_threads {
            builder = builder.pool_threads(threads.get());
        }
        if let Some(ms) = self.connect_timeout_ms {
            builder = builder.connect_timeout(Duration::from_millis(ms.get()));
        }
        if let Some(ms) = self.round_trip_timeout_ms {
            builder = builder.round_trip_timeout((ms > 0).then(|| Duration::from_millis(ms)));
        }
        if let Some(listen) = self.listen {
            builder.listen = listen;
        }
        if let Some(endpoints) = self.lane_endpoints {
            builder.lane_endpoints = endpoints;
        }
        if let Some(threads) = self.server_threads {
            builder = builder.server_threads(threads);
        }
        if let Some(thread) = self.watchdog_thread {
            builder = builder.watchdog_thread(thread);
        }
        if let Some(thread) = self.reactor_thread {
            builder = builder.reactor_thread(thread);
        }
        for (name, reference) in self.initial_references {
            builder = builder.initial_reference(&name, &reference);
        }
        let limits = self.limits.over(builder.limits.clone());
        builder.limits(limits)
    }

    /// Applies lanes, bands, protocols, priority mapping, scheduling and best effort.
    fn apply_real_time(&self, mut builder: OrbBuilder) -> OrbBuilder {
        if let Some(lanes) = &self.lanes {
            builder = builder.lanes(lanes.iter().copied());
        }
        let bands = self.bands.clone().map(Policy::PriorityBandedConnection);
        let protocols = self.client_protocols.clone().map(Policy::ClientProtocol);
        for policy in bands.into_iter().chain(protocols) {
            let is_other = |other: &Policy| other.name() != policy.name();
            builder.client_policies.retain(is_other);
            builder.client_policies.push(policy);
        }
        if let Some(policy) = self.sched_policy {
            builder.round_robin = policy == RealTimePolicy::RoundRobin;
        }
        builder = match self.priority_mapping {
            None => builder,
            Some(Mapping::Native) => builder.priority_mapping(NativeMapping),
            Some(Mapping::Linear) => builder.priority_mapping(LinearMapping),
            Some(Mapping::Continuous) => builder.priority_mapping(ContinuousMapping),
        };
        if let Some(is_bound) = self.bind_priority_bands {
            builder.binds_priority_bands = is_bound;
        }
        match self.best_effort {
            None => builder,
            Some(true) => builder.best_effort(),
            Some(false) => {
                builder.best_effort = None;
                builder
            }
        }
    }
}

/// A priority mapping that options can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    Native,
    Linear,
    Continuous,
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            // TAO calls it direct.
            "native" | "direct" => Ok(Self::Native),
            "linear" => Ok(Self::Linear),
            "continuous" => Ok(Self::Continuous),
            _ => Err(format!(
                "`{text}` is no priority mapping; there are native, linear, continuous"
            )),
        }
    }
}

/// The scheduling policy of threads with a CORBA priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RealTimePolicy {
    Fifo,
    RoundRobin,
}

impl FromStr for RealTimePolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "SCHED_FIFO" => Ok(Self::Fifo),
            "SCHED_RR" => Ok(Self::RoundRobin),
            _ => Err(format!(
                "`{text}` is no policy for threads with a priority; there are SCHED_FIFO, SCHED_RR"
            )),
        }
    }
}

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
    let is_none = |band: &&PriorityBand| band.low < 0 || band.low > band.high;
    match bands.iter().find(is_none) {
        Some(PriorityBand { low, high }) => Err(format!(
            "{low} to {high} is no band of priorities; write the less urgent one first, both from 0 to 32767"
        )),
        None => Ok(()),
    }
}

/// Checks that no protocol is listed twice.
pub(super) fn check_protocols(protocols: &[Protocol]) -> Result<(), String> {
    let of_tcp = |protocol: &&Protocol| matches!(protocol, Protocol::Tcp(_));
    let tcp = protocols.iter().filter(of_tcp).count();
    if tcp > 1 || protocols.len() - tcp > 1 {
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
        }

        impl LimitSettings {
            fn over(self, limits: Limits) -> Limits {
                Limits {
                    $($name: self.$name.map_or(limits.$name, NonZeroUsize::get),)*
                    send_timeout: self.send_timeout_ms.map_or(limits.send_timeout, Duration::from_millis),
                    idle_thread_time: self
                        .idle_thread_time_ms
                        .map_or(limits.idle_thread_time, Duration::from_millis),
                }
            }
        }
    };
}

limit_settings! {
    message_octets_max, connections_max, objects_max, adapters_max, bound_keys_max, thread_connections_max, shared_connections_max,
    fragment_chains_max, forwards_max, pool_threads_max, queued_requests_max
}

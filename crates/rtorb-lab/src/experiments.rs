//! Every experiment there is. A new one is a file in `experiments/` and a line in [`ALL`].

use crate::error::LabError;
use crate::experiment::Experiment;

mod beside;
mod mt_cubit;
pub mod orb_architectures;
pub mod orb_demux;
pub mod orb_event_channel;
pub mod orb_event_cost;
pub mod orb_footprint;
pub mod orb_histogram;
pub mod orb_latency_jitter;
pub mod orb_payload;
pub mod orb_priority_inversion;
pub mod orb_throughput;
pub mod orb_whitebox;
pub mod os_clock_overhead;
pub mod os_context_switch;
pub mod os_interruptions;
pub mod os_interval_jitter;
pub mod os_mutex;
pub mod os_other_cpu;
pub mod os_ready_queue;
pub mod os_services;
pub mod os_wakeup;
pub mod own_program;

/// In the order in which `rtorb measure` runs them.
pub const ALL: [&dyn Experiment; 20] = [
    &os_context_switch::STUDY,
    &os_ready_queue::STUDY,
    &os_services::STUDY,
    &os_other_cpu::STUDY,
    &os_clock_overhead::OsClockOverhead,
    &os_interruptions::OsInterruptions,
    &os_interval_jitter::OsIntervalJitter,
    &os_wakeup::OsWakeup,
    &os_mutex::STUDY,
    &orb_throughput::OrbThroughput,
    &orb_event_cost::STUDY,
    &orb_demux::STUDY,
    &orb_whitebox::OrbWhitebox,
    &orb_latency_jitter::OrbLatencyJitter,
    &orb_architectures::OrbArchitectures,
    &orb_priority_inversion::OrbPriorityInversion,
    &orb_histogram::OrbHistogram,
    &orb_payload::STUDY,
    &orb_event_channel::OrbEventChannel,
    &orb_footprint::OrbFootprint,
];

/// The experiment of this name.
///
/// # Errors
/// That there is none, with the names that there are.
pub fn by_name(name: &str) -> Result<&'static dyn Experiment, LabError> {
    let own = || own_program::OwnProgram::of(name).map(|own| own as &'static dyn Experiment);
    ALL.into_iter()
        .find(|experiment| experiment.name() == name)
        .or_else(own)
        .ok_or_else(|| LabError::UnknownExperiment {
            name: name.to_owned(),
            known: ALL.map(|experiment| experiment.name()).join(", "),
        })
}

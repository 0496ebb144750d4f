//! Which series of which experiment is which service of the platform: all of it is in one table.

use super::{Service, Source};
use crate::statistics::Statistics;
use crate::{Derived, LabelValue, Labels, Results, Series};

/// Which part of an experiment's results is which service.
pub(super) struct Mapping {
    pub(super) experiment: &'static str,
    /// The labels that a series must have.
    of: &'static [(&'static str, &'static str)],
    /// The derived number that is meant; none for series.
    derived: Option<&'static str>,
    pub(super) component: &'static str,
    pub(super) service: &'static str,
    /// The labels that make the configuration, where a series has them.
    configuration: &'static [&'static str],
    /// What the configuration says where a series does not have the label.
    otherwise: &'static [(&'static str, &'static str)],
    /// Whether a platform may be without it, so that nothing is missing where it is not.
    pub(super) may_lack: bool,
}

/// In the order of the experiments in a run.
pub(super) const MAPPING: [Mapping; 35] = [
    Mapping {
        of: &[("what", "switch")],
        configuration: &["test"],
        ..Mapping::new("os/context-switch", "scheduler", "context_switch")
    },
    Mapping {
        configuration: &["ready_tasks", "resolution_us"],
        ..Mapping::new("os/ready-queue", "scheduler", "ready_queue_switch")
    },
    Mapping {
        of: &[("service", "clock_read")],
        ..Mapping::new("os/services", "clock", "read")
    },
    Mapping {
        of: &[("service", "system_call")],
        ..Mapping::new("os/services", "kernel", "system_call")
    },
    Mapping {
        of: &[("service", "set_timer")],
        ..Mapping::new("os/services", "timer", "set")
    },
    Mapping {
        of: &[("service", "futex")],
        otherwise: &[("by", "futex")],
        ..Mapping::new("os/services", "scheduler", "wake")
    },
    Mapping {
        of: &[("service", "eventfd")],
        otherwise: &[("by", "eventfd")],
        ..Mapping::new("os/services", "scheduler", "wake")
    },
    Mapping {
        of: &[("service", "pi_lock")],
        ..Mapping::new("os/services", "mutex", "contended_lock")
    },
    Mapping {
        of: &[("service", "pi_hand_over")],
        ..Mapping::new("os/services", "mutex", "release_to_waiter")
    },
    Mapping {
        of: &[("service", "pipe")],
        otherwise: &[("transport", "pipe")],
        ..Mapping::new("os/services", "transport", "round_trip")
    },
    Mapping {
        of: &[("service", "unix")],
        otherwise: &[("transport", "unix")],
        ..Mapping::new("os/services", "transport", "round_trip")
    },
    Mapping {
        of: &[("service", "tcp")],
        otherwise: &[("transport", "tcp")],
        ..Mapping::new("os/services", "transport", "round_trip")
    },
    Mapping {
        of: &[("service", "futex")],
        configuration: PEER,
        otherwise: &[("by", "futex"), ("cpu", "other")],
        may_lack: true,
        ..Mapping::new("os/other-cpu", "scheduler", "wake")
    },
    Mapping {
        of: &[("service", "unix")],
        configuration: PEER,
        otherwise: &[("transport", "unix"), ("cpu", "other")],
        may_lack: true,
        ..Mapping::new("os/other-cpu", "transport", "round_trip")
    },
    Mapping {
        of: &[("service", "tcp")],
        configuration: PEER,
        otherwise: &[("transport", "tcp"), ("cpu", "other")],
        may_lack: true,
        ..Mapping::new("os/other-cpu", "transport", "round_trip")
    },
    Mapping {
        of: &[("what", "overhead")],
        configuration: &["tick", "resolution_us"],
        ..Mapping::new("os/clock-overhead", "clock", "tick")
    },
    Mapping {
        of: &[("what", "overhead_from_medians")],
        configuration: &["tick", "resolution_us"],
        ..Mapping::new("os/clock-overhead", "clock", "tick_from_medians")
    },
    Mapping {
        of: &[("what", "tick")],
        ..Mapping::new("os/interruptions", "kernel", "tick")
    },
    Mapping {
        of: &[("what", "interruption")],
        ..Mapping::new("os/interruptions", "kernel", "interruption")
    },
    Mapping {
        of: &[("what", "theft")],
        may_lack: true,
        ..Mapping::new("os/interruptions", "hypervisor", "theft")
    },
    Mapping {
        of: &[("what", "release")],
        ..Mapping::new("os/interruptions", "timer", "release_interrupt")
    },
    Mapping {
        of: &[("what", "jitter")],
        configuration: INTERVAL,
        ..Mapping::new("os/interval-jitter", "timer", "interval_jitter")
    },
    Mapping {
        of: &[("what", "lateness")],
        configuration: INTERVAL,
        ..Mapping::new("os/interval-jitter", "timer", "release_lateness")
    },
    Mapping {
        of: &[("what", "jitter_alone")],
        configuration: INTERVAL,
        ..Mapping::new("os/interval-jitter", "timer", "interval_jitter_alone")
    },
    Mapping {
        of: &[("what", "lateness_alone")],
        configuration: INTERVAL,
        ..Mapping::new("os/interval-jitter", "timer", "release_lateness_alone")
    },
    Mapping {
        of: &[("tool", "rtorb")],
        configuration: &["cpu"],
        ..Mapping::new("os/wakeup", "timer", "wakeup")
    },
    Mapping {
        derived: Some("wait_beyond_section"),
        configuration: &["mutex"],
        ..Mapping::new("os/mutex", "mutex", "hand_over")
    },
    Mapping {
        of: &[("orb", "raw"), ("part", "call")],
        configuration: CALL,
        ..Mapping::new("orb/throughput", "transport", "exchange")
    },
    Mapping {
        of: &[("orb", "rtorb"), ("part", "call")],
        configuration: &["operation", "len", "payload_bytes", "transport", "preset"],
        otherwise: &[("preset", "default")],
        ..Mapping::new("orb/throughput", "orb", "call")
    },
    Mapping {
        of: &[("part", "marshalling")],
        configuration: ARGUMENT,
        ..Mapping::new("orb/throughput", "orb", "marshalling")
    },
    Mapping {
        of: &[("part", "servant_work")],
        configuration: ARGUMENT,
        ..Mapping::new("orb/throughput", "orb", "servant_work")
    },
    Mapping {
        of: &[("what", "event")],
        configuration: EVENT,
        ..Mapping::new("orb/event-cost", "event_channel", "event")
    },
    Mapping {
        of: &[("what", "supplier_execution")],
        configuration: EVENT,
        ..Mapping::new("orb/event-cost", "event_channel", "supplier_execution")
    },
    Mapping {
        of: &[("what", "channel_execution")],
        configuration: EVENT,
        ..Mapping::new("orb/event-cost", "event_channel", "channel_execution")
    },
    Mapping {
        of: &[("what", "consumer_execution")],
        configuration: EVENT,
        ..Mapping::new("orb/event-cost", "event_channel", "consumer_execution")
    },
];

impl Mapping {
    const fn new(experiment: &'static str, component: &'static str, service: &'static str) -> Self {
        Self {
            experiment,
            of: &[],
            derived: None,
            component,
            service,
            configuration: &[],
            otherwise: &[],
            may_lack: false,
        }
    }

    /// The services that these results have, if they are of the experiment.
    pub(super) fn services(&self, results: &Results) -> Vec<Service> {
        if results.experiment != self.experiment {
            return Vec::new();
        }
        match self.derived {
            Some(name) => self.of_derived(results, name),
            None => self.of_series(results),
        }
    }

    /// Whether a service is of this row.
    pub(super) fn is_of(&self, service: &Service) -> bool {
        service.component == self.component && service.service == self.service
    }

    fn of_series(&self, results: &Results) -> Vec<Service> {
        let usable = |series: &&Series| series.wrong == 0 && series.count > 0;
        let matching = results.matching(self.of).filter(usable);
        let service = |series: &Series| {
            let measured = Measured {
                unit: &series.unit,
                count: series.count,
                statistics: series.statistics,
            };
            self.service(results, &series.labels, &measured)
        };
        matching.map(service).collect()
    }

    /// Of a derived number, the rounds are the samples.
    fn of_derived(&self, results: &Results, name: &str) -> Vec<Service> {
        let named = |derived: &&Derived| derived.name == name && !derived.rounds.is_empty();
        let service = |derived: &Derived| {
            let measured = Measured {
                unit: &derived.unit,
                count: derived.rounds.len() as u64,
                statistics: of_rounds(&derived.rounds),
            };
            self.service(results, &derived.labels, &measured)
        };
        results.derived.iter().filter(named).map(service).collect()
    }

    fn service(&self, results: &Results, labels: &Labels, measured: &Measured<'_>) -> Service {
        let Statistics {
            min,
            mean,
            stddev,
            p99,
            max,
            ..
        } = measured.statistics;
        Service {
            component: self.component.to_owned(),
            service: self.service.to_owned(),
            configuration: self.configured(labels),
            unit: measured.unit.to_owned(),
            min,
            mean,
            max,
            stddev,
            count: measured.count,
            p99,
            source: Source {
                experiment: results.experiment.clone(),
                run: results.run.clone(),
                derived: self.derived.map(str::to_owned),
                labels: labels.clone(),
            },
        }
    }

    /// Load is part of every configuration that was measured under it.
    fn configured(&self, labels: &Labels) -> Labels {
        let otherwise = self.otherwise.iter();
        let mut configuration: Labels = otherwise
            .map(|(name, value)| ((*name).to_owned(), LabelValue::from(*value)))
            .collect();
        for name in self.configuration.iter().chain(&LOAD) {
            if let Some(value) = labels.get(*name) {
                configuration.insert((*name).to_owned(), value.clone());
            }
        }
        configuration
    }
}

struct Measured<'a> {
    unit: &'a str,
    count: u64,
    statistics: Statistics,
}

/// The statistics of a few values, exact; percentiles are the nearest ranks.
fn of_rounds(rounds: &[f64]) -> Statistics {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let at = |share: f64| sorted[((share * count).ceil() as usize).clamp(1, sorted.len()) - 1];
    Statistics {
        min: sorted[0],
        mean,
        stddev: match sorted.len() {
            1 => 0.0,
            _ => (squares / (count - 1.0)).sqrt(),
        },
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: sorted[sorted.len() - 1],
    }
}

const INTERVAL: &[&str] = &[
    "timers",
    "pattern",
    "priority",
    "resolution_us",
    "interval_us",
];
const CALL: &[&str] = &["operation", "len", "payload_bytes", "transport"];
const ARGUMENT: &[&str] = &["operation", "len", "payload_bytes"];
const EVENT: &[&str] = &["transport", "consumers", "payload_bytes"];
const PEER: &[&str] = &["peer"];
const LOAD: [&str; 2] = ["load", "background_load"];

//! Which series of an experiment are a service of the platform.

use super::{Service, Source};
use crate::statistics::Statistics;
use crate::{Derived, LabelValue, Labels, Results, Series};

/// What an experiment's results have of the platform's services.
#[derive(Clone, Copy, Debug)]
pub struct Services {
    /// Its name.
    pub experiment: &'static str,
    /// Each a service, or a configuration of one.
    pub rows: &'static [ServiceRow],
}

/// The series of an experiment's results that are a service of the platform.
#[derive(Clone, Copy, Debug)]
pub struct ServiceRow {
    pub(super) component: &'static str,
    pub(super) service: &'static str,
    pub(super) may_lack: bool,
    of: &'static [(&'static str, &'static str)],
    derived: Option<&'static str>,
    configuration: &'static [&'static str],
    otherwise: &'static [(&'static str, &'static str)],
}

impl ServiceRow {
    /// All times of an experiment, without a configuration: what this part of the platform does as this service.
    #[must_use]
    pub const fn new(component: &'static str, service: &'static str) -> Self {
        Self {
            component,
            service,
            may_lack: false,
            of: &[],
            derived: None,
            configuration: &[],
            otherwise: &[],
        }
    }

    /// Only the series that have these labels.
    #[must_use]
    pub const fn of(self, of: &'static [(&'static str, &'static str)]) -> Self {
        Self { of, ..self }
    }

    /// The derived number of this name instead of series.
    #[must_use]
    pub const fn of_derived(self, name: &'static str) -> Self {
        Self {
            derived: Some(name),
            ..self
        }
    }

    /// The labels that make the configuration, where a series has them.
    #[must_use]
    pub const fn configured_by(self, configuration: &'static [&'static str]) -> Self {
        Self {
            configuration,
            ..self
        }
    }

    /// What the configuration says where a series does not have the label.
    #[must_use]
    pub const fn otherwise(self, otherwise: &'static [(&'static str, &'static str)]) -> Self {
        Self { otherwise, ..self }
    }

    /// A platform may be without it: nothing is missing where it is not.
    #[must_use]
    pub const fn may_lack(self) -> Self {
        Self {
            may_lack: true,
            ..self
        }
    }

    /// The services that these results have.
    pub(super) fn services(&self, results: &Results) -> Vec<Service> {
        match self.derived {
            Some(name) => self.derived_services(results, name),
            None => self.series_services(results),
        }
    }

    /// Whether a service is of this row.
    pub(super) fn is_of(&self, service: &Service) -> bool {
        service.component == self.component && service.service == self.service
    }

    fn series_services(&self, results: &Results) -> Vec<Service> {
        let usable =
            |series: &&Series| series.wrong == 0 && series.count > 0 && series.unit == "ns";
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
    fn derived_services(&self, results: &Results, name: &str) -> Vec<Service> {
        let named = |derived: &&Derived| derived.name == name && !derived.rounds.is_empty();
        let service = |derived: &Derived| {
            let measured = Measured {
                unit: &derived.unit,
                count: derived.rounds.len() as u64,
                statistics: Statistics::exactly(&derived.rounds),
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

const LOAD: [&str; 2] = ["load", "background_load"];

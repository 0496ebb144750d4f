//! The profile file (docs/reference/profile.md): the fields that costs use. Unknown fields are ignored.

use core::fmt;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Statistic;
use crate::text_file::forms::MISTAKES_MAX;
use crate::text_file::{Mistake, from_json};

/// The fields of a profile that are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Profile {
    pub(super) host: Host,
    pub(super) real_time: bool,
    pub(super) incomplete: Vec<MissingMeasurement>,
    pub(super) virtual_time: Option<VirtualTime>,
    pub(super) tick_period_ns: Option<u64>,
    pub(super) blocking: Option<Blocking>,
    pub(super) services: Vec<Service>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Host {
    /// `none`, `kvm`, `kvm, container`, ...; older profiles have no value.
    #[serde(default)]
    pub(super) virtualisation: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct MissingMeasurement {
    pub(super) experiment: String,
    pub(super) why: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct VirtualTime {
    pub(super) nanosecond_is: String,
    #[serde(default)]
    pub(super) leaves_out: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Blocking {
    pub(super) bound: f64,
    pub(super) beyond_wakeup: Option<f64>,
    pub(super) load: String,
    pub(super) count: u64,
    pub(super) usual: Option<UsualBlocking>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct UsualBlocking {
    pub(super) p99: f64,
    pub(super) beyond_wakeup: Option<f64>,
    pub(super) load: String,
    pub(super) count: u64,
}

/// The measurement of a service in one configuration.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Service {
    pub(super) component: String,
    pub(super) service: String,
    configuration: BTreeMap<String, Value>,
    unit: String,
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
    pub(super) p99: f64,
    pub(super) count: u64,
    source: Source,
}

#[derive(Clone, Debug, Deserialize)]
struct Source {
    #[serde(default)]
    labels: BTreeMap<String, Value>,
}

const SCHEMA: &str = "rtorb-profile/1";
/// How a profile is made.
pub(super) const MADE_BY: &str =
    "a platform profile is DIR/profile.json of `rtorb lab run profile --out DIR`";

impl Profile {
    /// Parses a profile, or returns all mistakes.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        let head: Head = from_json(text)?;
        match head.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(other) => {
                let reason = format!("its schema is {other:?}, but this program reads {SCHEMA:?}");
                return Err(vec![Mistake::of_whole(reason)]);
            }
            None => {
                let reason = "it has no `schema`, so it is not a platform profile";
                return Err(vec![Mistake::of_whole(reason)]);
            }
        }
        let profile: Self = from_json(text)?;
        let services = profile.services.iter().enumerate();
        let wrong = services.filter_map(|(place, service)| {
            let reason = service.check().err()?;
            Some(Mistake::of_whole(format!(
                "services[{place}] ({service}): {reason}"
            )))
        });
        let wrong: Vec<Mistake> = wrong.take(MISTAKES_MAX).collect();
        if wrong.is_empty() {
            Ok(profile)
        } else {
            Err(wrong)
        }
    }

    /// Returns whether a hypervisor may take the CPU; a container has none of its own.
    pub(super) fn is_virtual_machine(&self) -> bool {
        let mut layers = self.host.virtualisation.split(", ");
        layers.any(|layer| !matches!(layer, "" | "none" | "container"))
    }

    /// Returns this service in all configurations, in the order of the file.
    pub(super) fn all<'a>(
        &'a self,
        component: &'a str,
        service: &'a str,
    ) -> impl Iterator<Item = &'a Service> + Clone {
        self.services
            .iter()
            .filter(move |found| found.component == component && found.service == service)
    }
}

impl Service {
    fn check(&self) -> Result<(), String> {
        if self.unit != "ns" {
            return Err(format!(
                "its unit is {:?}, but this program reads \"ns\"",
                self.unit
            ));
        }
        if self.count == 0 {
            return Err("it has no samples".to_owned());
        }
        if self.min > self.p99 || self.p99 > self.max || self.min < 0.0 {
            return Err(format!(
                "its min, p99 and max are {}, {} and {}, but each must be at least the one before",
                self.min, self.p99, self.max
            ));
        }
        Ok(())
    }

    /// Returns its statistic, in ns, rounded up.
    pub(super) fn ns(&self, statistic: Statistic) -> u64 {
        whole_ns(match statistic {
            Statistic::Max => self.max,
            Statistic::P99 => self.p99,
        })
    }

    /// Returns a text field of its configuration.
    pub(super) fn says(&self, name: &str) -> Option<&str> {
        self.configuration.get(name).and_then(Value::as_str)
    }

    /// Returns a number of its configuration.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.configuration.get(name).and_then(Value::as_u64)
    }

    /// Returns whether rtorb was measured: the laboratory measures other ORBs too.
    pub(super) fn is_ours(&self) -> bool {
        let orb = self.source.labels.get("orb").and_then(Value::as_str);
        orb.is_none_or(|orb| orb == "rtorb")
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.component, self.service)?;
        for (name, value) in &self.configuration {
            match value {
                Value::String(text) => write!(f, " {name}={text}")?,
                other => write!(f, " {name}={other}")?,
            }
        }
        Ok(())
    }
}

/// Rounds a measured value up to whole ns; a negative one becomes 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates at 64 bits"
)]
pub(super) fn whole_ns(value: f64) -> u64 {
    value.max(0.0).ceil() as u64
}

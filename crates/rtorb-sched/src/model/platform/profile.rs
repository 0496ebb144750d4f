//! The profile file (docs/reference/profile.md): the fields that costs use. Unknown fields are ignored.

use core::fmt;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Statistic;

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
const MADE_BY: &str = "`rtorb lab run profile --out DIR` writes DIR/profile.json";

impl Profile {
    /// Parses a profile; an error has the line, if there is one, and the reason.
    pub(super) fn parse(text: &str) -> Result<Self, (Option<usize>, String)> {
        let wrong = |error: serde_json::Error| {
            let line = (error.line() > 0).then(|| error.line());
            (
                line,
                format!("this is not a platform profile: {error}; {MADE_BY}"),
            )
        };
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        let head: Head = serde_json::from_str(text).map_err(wrong)?;
        match head.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(other) => {
                let reason = format!(
                    "its schema is {other:?}, but this program reads {SCHEMA:?}; {MADE_BY}"
                );
                return Err((None, reason));
            }
            None => {
                let reason =
                    format!("it has no `schema`, so it is not a platform profile; {MADE_BY}");
                return Err((None, reason));
            }
        }
        let profile: Self = serde_json::from_str(text).map_err(wrong)?;
        for (place, service) in profile.services.iter().enumerate() {
            service.check().map_err(|reason| {
                (
                    None,
                    format!("services[{place}] ({service}): {reason}; {MADE_BY}"),
                )
            })?;
        }
        Ok(profile)
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

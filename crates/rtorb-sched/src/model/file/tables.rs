//! The tables of the file as written: names are text, and nothing is cross-checked yet.

use core::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use crate::task::Criticality;

use super::values::{CorbaPriority, Integer, StrategyName, Time, TimeVisitor};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) strategy: StrategyName,
    #[serde(default)]
    pub(super) priorities: PrioritiesTable,
    #[serde(default)]
    pub(super) idl: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) node: Vec<NodeTable>,
    #[serde(default)]
    pub(super) link: Vec<LinkTable>,
    #[serde(default)]
    pub(super) channel: Vec<ChannelTable>,
    #[serde(default)]
    pub(super) component: Vec<ComponentTable>,
    #[serde(default)]
    pub(super) chain: Vec<ChainTable>,
    #[serde(default)]
    pub(super) cause_effect_chain: Vec<CauseEffectChainTable>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrioritiesTable {
    pub(super) least_urgent: Option<Spanned<CorbaPriority>>,
    pub(super) most_urgent: Option<Spanned<CorbaPriority>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeTable {
    pub(super) name: Spanned<String>,
    pub(super) cpus: Option<Integer<1, 1024>>,
    pub(super) profile: Option<Spanned<String>>,
    pub(super) scheduling: Option<Spanned<SchedulingNames>>,
    pub(super) levels: Option<Spanned<Integer<1, 98>>>,
    pub(super) tick: Option<Spanned<Time>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SchedulingName {
    #[default]
    FixedPriority,
    Edf,
}

/// One policy for all CPUs of a node, or one for each.
pub(super) enum SchedulingNames {
    All(SchedulingName),
    Each(Vec<SchedulingName>),
}

impl<'de> Deserialize<'de> for SchedulingNames {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        struct SchedulingVisitor;
        impl<'de> Visitor<'de> for SchedulingVisitor {
            type Value = SchedulingNames;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"fixed-priority\" or \"edf\" for all CPUs, or one for each, such as [\"fixed-priority\", \"edf\"]",
                )
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<SchedulingNames, E> {
                let name = SchedulingName::deserialize(name.into_deserializer());
                name.map(SchedulingNames::All)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<SchedulingNames, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(SchedulingNames::Each)
            }
        }
        value.deserialize_any(SchedulingVisitor)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkTable {
    pub(super) between: Spanned<Vec<Spanned<String>>>,
    pub(super) latency: Time,
    pub(super) bits_per_second: Option<Integer<1, 1_000_000_000_000_000>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChannelTable {
    pub(super) name: Spanned<String>,
    pub(super) node: Option<Spanned<String>>,
    pub(super) cpu: Option<Spanned<Integer<0, 1023>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComponentTable {
    pub(super) name: Spanned<String>,
    pub(super) node: Option<Spanned<String>>,
    pub(super) cpu: Option<Spanned<Integer<0, 1023>>>,
    #[serde(default)]
    pub(super) resource: Vec<ResourceTable>,
    #[serde(default)]
    pub(super) behaviour: Vec<BehaviourTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResourceTable {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) mutex: MutexName,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MutexName {
    #[default]
    Inheritance,
    Ceiling,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BehaviourTable {
    pub(super) name: Spanned<String>,
    pub(super) period: Option<Spanned<Time>>,
    pub(super) offset: Option<Spanned<Time>>,
    pub(super) minimum_gap: Option<Spanned<Time>>,
    pub(super) maximum_gap: Option<Spanned<Time>>,
    pub(super) burst: Option<Spanned<BurstTable>>,
    pub(super) enforcement: Option<Spanned<EnforcementTable>>,
    pub(super) execution: Option<Spanned<ExecutionTable>>,
    pub(super) deadline: Option<Spanned<Time>>,
    pub(super) criticality: Option<Spanned<Criticality>>,
    pub(super) priority: Option<Spanned<CorbaPriority>>,
    pub(super) operation: Option<Spanned<String>>,
    pub(super) jitter: Option<Spanned<Time>>,
    #[serde(default)]
    pub(super) sections: Vec<SectionTable>,
    #[serde(default)]
    pub(super) calls: Vec<CallTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BurstTable {
    pub(super) jobs: Integer<2, 1000>,
    pub(super) window: Spanned<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnforcementTable {
    pub(super) policy: EnforcementName,
    pub(super) budget: Option<Spanned<Time>>,
    pub(super) granularity: Option<Spanned<Time>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EnforcementName {
    Count,
    Demote,
    Stop,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionTable {
    pub(super) resource: Spanned<String>,
    pub(super) length: Spanned<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallTable {
    pub(super) to: Spanned<Callees>,
    #[serde(default)]
    pub(super) way: WayName,
    pub(super) channel: Option<Spanned<String>>,
    pub(super) payload: Option<Integer<0, 16_777_216>>,
    pub(super) count: Option<Spanned<Integer<1, 1000>>>,
    pub(super) lingering: Option<Spanned<Time>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WayName {
    #[default]
    TwoWay,
    OneWay,
    Event,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainTable {
    pub(super) name: Spanned<String>,
    pub(super) through: Spanned<Vec<Spanned<String>>>,
    pub(super) deadline: Spanned<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CauseEffectChainTable {
    pub(super) name: Spanned<String>,
    pub(super) through: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) communication: CommunicationName,
    pub(super) data_age_max: Option<Spanned<Time>>,
    pub(super) reaction_time_max: Option<Spanned<Time>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CommunicationName {
    #[default]
    Implicit,
    Let,
}

/// One name, or several.
pub(super) enum Callees {
    One(String),
    Many(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for Callees {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        struct CalleesVisitor;
        impl<'de> Visitor<'de> for CalleesVisitor {
            type Value = Callees;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "the name of a behaviour, such as \"filter.update\", or of an event's consumers, such as [\"display.show\", \"log.write\"]",
                )
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Callees, E> {
                Ok(Callees::One(name.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Callees, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(Callees::Many)
            }
        }
        value.deserialize_any(CalleesVisitor)
    }
}

/// One of the three forms of an execution time.
pub(super) enum ExecutionTable {
    Fixed(Time),
    Range { least: Time, most: Time },
    Histogram(Vec<BucketTable>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BucketTable {
    pub(super) up_to: Spanned<Time>,
    pub(super) count: Integer<1, { u32::MAX as u64 }>,
}

impl<'de> Deserialize<'de> for ExecutionTable {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        struct ExecutionVisitor;
        impl<'de> Visitor<'de> for ExecutionVisitor {
            type Value = ExecutionTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXECUTION_FORMS)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ExecutionTable, E> {
                TimeVisitor.visit_str(text).map(ExecutionTable::Fixed)
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ExecutionTable, A::Error> {
                let fields = ExecutionFields::deserialize(MapAccessDeserializer::new(fields))?;
                match (fields.least, fields.most, fields.histogram) {
                    (Some(least), Some(most), None) => Ok(ExecutionTable::Range { least, most }),
                    (None, None, Some(buckets)) => Ok(ExecutionTable::Histogram(buckets)),
                    _ => Err(A::Error::custom(format!("write {EXECUTION_FORMS}"))),
                }
            }
        }
        value.deserialize_any(ExecutionVisitor)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutionFields {
    least: Option<Time>,
    most: Option<Time>,
    histogram: Option<Vec<BucketTable>>,
}

const EXECUTION_FORMS: &str = "an execution time such as \"2ms\", { least = \"1ms\", most = \"2ms\" } or { histogram = [{ up_to = \"1ms\", count = 90 }] }";

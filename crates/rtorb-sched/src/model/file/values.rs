//! The values of fields: times, whole numbers and names, with errors that state what is expected.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, Unexpected, Visitor};

use crate::levels::Strategy;
use crate::times::parse_ns;

/// A time of at most one day, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) u64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(TimeVisitor)
    }
}

pub(super) struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time with its unit, such as \"50ms\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
        let ns = parse_ns(text).map_err(E::custom)?;
        if ns > TIME_NS_MAX {
            let reason = format!("{text} is more than a day: a time of a system is at most 86400s");
            return Err(E::custom(reason));
        }
        Ok(Time(ns))
    }
}

/// A whole number in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integer<const LEAST: u64, const MOST: u64>(pub(super) u64);

/// A CORBA priority.
pub(super) type CorbaPriority = Integer<0, 32_767>;

impl CorbaPriority {
    pub(super) fn corba(self) -> i16 {
        i16::try_from(self.0).expect("it was read as one")
    }
}

impl<const LEAST: u64, const MOST: u64> Integer<LEAST, MOST> {
    /// Returns the number; `MOST` must be less than 2^32.
    pub(super) fn small(self) -> u32 {
        u32::try_from(self.0).expect("it is in a range that is")
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Integer<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        struct IntegerVisitor<const LEAST: u64, const MOST: u64>;
        impl<const LEAST: u64, const MOST: u64> Visitor<'_> for IntegerVisitor<LEAST, MOST> {
            type Value = Integer<LEAST, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                u64::try_from(number)
                    .ok()
                    .filter(|number| (LEAST..=MOST).contains(number))
                    .map(Integer)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
            }
        }
        value.deserialize_any(IntegerVisitor)
    }
}

/// A strategy that assigns fixed priorities.
pub(super) struct StrategyName(pub(super) Strategy);

impl Default for StrategyName {
    fn default() -> Self {
        Self(Strategy::RateMonotonic)
    }
}

impl<'de> Deserialize<'de> for StrategyName {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let text = String::deserialize(value)?;
        let fixed = "rms, dms, muf or optimal";
        match text.parse() {
            Ok(Strategy::EarliestDeadlineFirst | Strategy::MinimumLaxityFirst) => {
                Err(D::Error::custom(format!(
                    "{text:?} assigns no fixed priorities: choose {fixed} here, or write scheduling = \"edf\" for a node"
                )))
            }
            Ok(strategy) => Ok(Self(strategy)),
            Err(_) => Err(D::Error::custom(format!(
                "unknown strategy {text:?}: choose {fixed}"
            ))),
        }
    }
}

/// With this maximum, a thousand times over a hundred thousand calls still fits into 64 bits of ns.
pub(super) const TIME_NS_MAX: u64 = 86_400_000_000_000;

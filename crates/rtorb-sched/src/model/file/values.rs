//! What stands behind a field: times, whole numbers, words, each with what would be right when it is wrong.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, Unexpected, Visitor};

use crate::levels::Strategy;
use crate::times::parse_ns;

/// A time as people write it, of at most a day, in ns.
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
        f.write_str("a time with its unit, as \"50ms\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
        let ns = parse_ns(text).map_err(E::custom)?;
        if ns > TIME_NS_MAX {
            let reason = format!("{text} is more than a day: times of a system are at most 86400s");
            return Err(E::custom(reason));
        }
        Ok(Time(ns))
    }
}

/// A whole number between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole<const LEAST: u64, const MOST: u64>(pub(super) u64);

/// A CORBA priority.
pub(super) type Priority = Whole<0, 32_767>;

impl Priority {
    pub(super) fn corba(self) -> i16 {
        i16::try_from(self.0).expect("it was read as one")
    }
}

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    /// Where `MOST` is less than 2^32.
    pub(super) fn small(self) -> u32 {
        u32::try_from(self.0).expect("it is in a range that is")
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        struct WholeVisitor<const LEAST: u64, const MOST: u64>;
        impl<const LEAST: u64, const MOST: u64> Visitor<'_> for WholeVisitor<LEAST, MOST> {
            type Value = Whole<LEAST, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                u64::try_from(number)
                    .ok()
                    .filter(|number| (LEAST..=MOST).contains(number))
                    .map(Whole)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
            }
        }
        value.deserialize_any(WholeVisitor)
    }
}

/// A strategy of fixed priorities.
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
                    "{text:?} makes no fixed priorities: choose {fixed} here, or scheduling = \"edf\" for a node"
                )))
            }
            Ok(strategy) => Ok(Self(strategy)),
            Err(_) => Err(D::Error::custom(format!(
                "there is no strategy {text:?}: choose {fixed}"
            ))),
        }
    }
}

/// So that a thousand of them, times a hundred thousand calls, still are ns in 64 bits.
pub(super) const TIME_NS_MAX: u64 = 86_400_000_000_000;

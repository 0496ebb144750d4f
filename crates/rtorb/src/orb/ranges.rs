//! Numbers and times within a range. The error for another one says the range.

use core::fmt::{Debug, Display};
use core::time::Duration;
use serde::de::{Deserialize, Deserializer, Error};

/// A number from `MIN` to `MAX`.
pub(super) type Count<const MIN: u64, const MAX: u64 = { u64::MAX }> = Within<usize, MIN, MAX>;

/// A time from `MIN` to `MAX` milliseconds; in a file, a number of milliseconds.
pub(super) type Milliseconds<const MIN: u64, const MAX: u64 = DAY_MS> = Within<Duration, MIN, MAX>;

/// System calls limit the duration of a timeout.
const DAY_MS: u64 = 86_400_000;

/// An amount from `MIN` to `MAX` of its units. `u64::MAX` is no bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within<T, const MIN: u64, const MAX: u64>(T);

/// A type of amounts that are written as numbers.
pub(super) trait Amount: Copy + Debug + PartialOrd {
    /// The unit, after a space.
    const UNIT: &'static str;
    /// Returns an amount of `number` units.
    fn of(number: u64) -> Self;
}

impl<T: Amount, const MIN: u64, const MAX: u64> Within<T, MIN, MAX> {
    /// Checks an amount.
    ///
    /// # Errors
    /// The range, if the amount is not in it.
    pub(super) fn new(amount: T) -> Result<Self, String> {
        if T::of(MIN) <= amount && (MAX == u64::MAX || amount <= T::of(MAX)) {
            Ok(Self(amount))
        } else {
            Err(Self::wrong(format_args!("{amount:?}")))
        }
    }

    /// Returns the amount.
    pub(super) const fn get(self) -> T {
        self.0
    }

    fn wrong(given: impl Display) -> String {
        match MAX {
            u64::MAX => format!("must be {MIN}{} or more, not {given}", T::UNIT),
            _ => format!("must be from {MIN} to {MAX}{}, not {given}", T::UNIT),
        }
    }
}

impl<'de, T: Amount, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<T, MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(value)?;
        let amount = u64::try_from(number).map(T::of).ok();
        let within = amount.and_then(|amount| Self::new(amount).ok());
        within.ok_or_else(|| Error::custom(Self::wrong(number)))
    }
}

impl Amount for usize {
    const UNIT: &'static str = "";

    fn of(number: u64) -> Self {
        number as Self
    }
}

impl Amount for Duration {
    const UNIT: &'static str = " ms";

    fn of(number: u64) -> Self {
        Self::from_millis(number)
    }
}

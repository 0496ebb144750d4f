//! The deadline of a request in its service contexts: as CORBA Messaging's end times, or as the time that is left.

use super::contexts::{INVOCATION_POLICIES, REMAINING_TIME};
use super::service_context::{ServiceContext, ServiceContexts};
use crate::cdr::ByteOrder;
use crate::{DecodeError, Reader};
use alloc::borrow::Cow;

/// Policy types of CORBA Messaging that bound the time of a request.
mod policy_type {
    /// The end of the time in which the request may be delivered to the object: a `UtcT`.
    pub(super) const REQUEST_END_TIME: u32 = 28;
    /// The end of the time in which the reply is useful: a `UtcT`.
    pub(super) const REPLY_END_TIME: u32 = 30;
    /// The time from the sending of the request to its delivery: a `TimeT`.
    pub(super) const RELATIVE_REQUEST_TIMEOUT: u32 = 31;
    /// The time from the sending of the request to the reply: a `TimeT`.
    pub(super) const RELATIVE_ROUND_TRIP_TIMEOUT: u32 = 32;
}

/// A time of UTC, and how wrong it may be (`TimeBase::UtcT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcTime {
    /// Units of 100 ns since 15 October 1582.
    pub ticks: u64,
    /// The largest error of `ticks`, in its units; 48 bits on the wire.
    pub inaccuracy_ticks: u64,
}

/// The time of UTC at the beginning of a monotonic clock, in units of 100 ns since 15 October 1582. It is known to be in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcOrigin {
    /// The earliest that it may be.
    pub earliest_ticks: u64,
    /// The latest that it may be.
    pub latest_ticks: u64,
}

/// When a request expires, as its service contexts say. If they say it several times, the earliest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The time by the clock of the client, which both sides share, or which is disciplined.
    pub end: Option<UtcTime>,
    /// The time that was left when the client sent the request, in nanoseconds. How long the request travelled is not known.
    pub remaining_ns: Option<u64>,
}

/// The data of an [`INVOCATION_POLICIES`] context with both end times.
pub const END_TIMES_BYTES: usize = 72;

/// The data of a [`REMAINING_TIME`] context.
pub const REMAINING_TIME_BYTES: usize = 16;

/// Nanoseconds of a unit of `TimeT`.
const TICK_NS: u64 = 100;

/// The largest inaccuracy that 48 bits hold.
const INACCURACY_MAX: u64 = (1 << 48) - 1;

impl UtcTime {
    /// The time that is `ns` nanoseconds after `origin`. The unit of `ticks` is part of its inaccuracy.
    #[inline]
    pub const fn after(origin: UtcOrigin, ns: u64) -> Self {
        let UtcOrigin {
            earliest_ticks,
            latest_ticks,
        } = origin;
        Self {
            ticks: latest_ticks.wrapping_add(ns / TICK_NS),
            inaccuracy_ticks: latest_ticks.wrapping_sub(earliest_ticks).wrapping_add(1),
        }
    }

    /// The most nanoseconds from `origin` until this time; 0 if it is before `origin`.
    #[inline]
    pub const fn latest_ns_after(self, origin: UtcOrigin) -> u64 {
        self.latest_ticks()
            .saturating_sub(origin.earliest_ticks)
            .saturating_mul(TICK_NS)
    }

    /// As [`latest_ns_after`](Self::latest_ns_after), without saturating arithmetic, which costs more. Returns `None` for a time before
    /// `origin`, or more than 580 years after it.
    #[inline(always)]
    pub const fn near_ns_after(self, origin: UtcOrigin) -> Option<u64> {
        let latest = self.ticks.wrapping_add(self.inaccuracy_ticks);
        // A time before `origin`, or one that wraps, becomes more ticks than nanoseconds can say.
        latest
            .wrapping_sub(origin.earliest_ticks)
            .checked_mul(TICK_NS)
    }

    const fn latest_ticks(self) -> u64 {
        self.ticks.saturating_add(self.inaccuracy_ticks)
    }

    /// The data of an [`INVOCATION_POLICIES`] context that says this time twice: as RequestEndTime and as ReplyEndTime.
    #[inline]
    //= CORBA 3 §22.2
    //# A request with an end time must not be delivered after it, and its reply is of no use after it.
    pub fn end_times(self) -> [u8; END_TIMES_BYTES] {
        let mut data = [0; END_TIMES_BYTES];
        self.write_end_times(&mut data);
        data
    }

    /// Writes what [`end_times`](Self::end_times) returns: a template, with the time in its two places.
    #[inline(always)]
    pub(super) fn write_end_times(self, data: &mut [u8; END_TIMES_BYTES]) {
        let inaccuracy = self.inaccuracy_ticks.min(INACCURACY_MAX);
        // The lower 32 bits come first in either byte order, then the upper 16. One word, which is written at once.
        let inaccuracy = if cfg!(target_endian = "little") {
            inaccuracy
        } else {
            inaccuracy << 32 | inaccuracy >> 32 << 16
        };
        *data = TEMPLATE;
        for at in [24, 56] {
            put(data, at, &self.ticks.to_ne_bytes());
            put(data, at + 8, &inaccuracy.to_ne_bytes());
        }
    }
}

/// Both end times, without the times themselves.
const TEMPLATE: [u8; END_TIMES_BYTES] = {
    let mut data = [0; END_TIMES_BYTES];
    data[0] = ByteOrder::NATIVE.flag();
    put(&mut data, 4, &2_u32.to_ne_bytes());
    put(&mut data, 8, &policy_type::REQUEST_END_TIME.to_ne_bytes());
    put(&mut data, 12, &UTC_BYTES.to_ne_bytes());
    data[16] = ByteOrder::NATIVE.flag();
    put(&mut data, 40, &policy_type::REPLY_END_TIME.to_ne_bytes());
    put(&mut data, 44, &UTC_BYTES.to_ne_bytes());
    data[48] = ByteOrder::NATIVE.flag();
    data
};

/// A list of service contexts that contains only end times: the number of contexts, the id, the size of the data, and the data.
pub(super) const OWN_LIST_BYTES: usize = 12 + END_TIMES_BYTES;

/// Such a list in the byte order of this host, without the times themselves.
const OWN_LIST: [u8; OWN_LIST_BYTES] = {
    let mut list = [0; OWN_LIST_BYTES];
    put(&mut list, 0, &1_u32.to_ne_bytes());
    put(&mut list, 4, &INVOCATION_POLICIES.to_ne_bytes());
    put(&mut list, 8, &(END_TIMES_BYTES as u32).to_ne_bytes());
    put(&mut list, 12, &TEMPLATE);
    list
};

/// The end time in a list of service contexts in the byte order of this host, if the list contains only what [`UtcTime::end_times`] made on
/// such a host.
#[inline(always)]
pub(super) fn own_end_time(list: &[u8; OWN_LIST_BYTES]) -> Option<UtcTime> {
    // All bytes but those that pad the times to multiples of 8. The last line compares both times. Comparisons of 16 bytes, all of
    // which are made, cost least.
    let is_own = (part(list, 0) == part(&OWN_LIST, 0))
        & (part(list, 16) == part(&OWN_LIST, 16))
        & (part(list, 50) == part(&OWN_LIST, 50))
        & (part(list, 36) == part(list, 68));
    let inaccuracy = word(list, 44);
    is_own.then_some(UtcTime {
        ticks: word(list, 36),
        // The lower 32 bits come first in either byte order, then the upper 16, and 16 that are 0.
        inaccuracy_ticks: if cfg!(target_endian = "little") {
            inaccuracy
        } else {
            inaccuracy >> 32 | (inaccuracy >> 16 & 0xffff) << 32
        },
    })
}

/// 16 bytes of a list.
#[inline(always)]
fn part(list: &[u8; OWN_LIST_BYTES], at: usize) -> u128 {
    list[at..]
        .first_chunk()
        .map_or(0, |part| u128::from_ne_bytes(*part))
}

/// 8 bytes of a list.
#[inline(always)]
fn word(list: &[u8; OWN_LIST_BYTES], at: usize) -> u64 {
    list[at..]
        .first_chunk()
        .map_or(0, |word| u64::from_ne_bytes(*word))
}

/// The encapsulation of a `UtcT`.
const UTC_BYTES: u32 = 24;

#[inline(always)]
const fn put(data: &mut [u8], at: usize, bytes: &[u8]) {
    let (_, from) = data.split_at_mut(at);
    let (to, _) = from.split_at_mut(bytes.len());
    to.copy_from_slice(bytes);
}

/// The data of a [`REMAINING_TIME`] context.
#[inline]
pub fn remaining_time(remaining_ns: u64) -> [u8; REMAINING_TIME_BYTES] {
    let mut data = [0; REMAINING_TIME_BYTES];
    data[0] = ByteOrder::NATIVE.flag();
    put(&mut data, 8, &remaining_ns.to_ne_bytes());
    data
}

impl Expiry {
    /// The request never expires.
    pub const NEVER: Self = Self {
        end: None,
        remaining_ns: None,
    };

    /// Finds out when a request with these contexts expires. Contexts and policies that are malformed or unknown say nothing.
    pub fn of(contexts: ServiceContexts<'_>) -> Self {
        let mut expiry = Self::NEVER;
        for context in contexts {
            // Like a context that is not known, one that cannot be read must not fail a request that asks for nothing else.
            let _ = match context.id {
                INVOCATION_POLICIES => expiry.read_policies(context.data),
                REMAINING_TIME => expiry.read_remaining(context.data),
                _ => Ok(()),
            };
        }
        expiry
    }

    /// True if the request never expires.
    #[inline]
    pub fn is_never(&self) -> bool {
        *self == Self::NEVER
    }

    fn read_policies(&mut self, data: &[u8]) -> Result<(), DecodeError> {
        for_each_policy(data, |policy, value, _| self.read_policy(policy, value))
    }

    fn read_policy(&mut self, policy: u32, value: &[u8]) -> Result<(), DecodeError> {
        match policy {
            policy_type::REQUEST_END_TIME | policy_type::REPLY_END_TIME => {
                let mut r = Reader::encapsulated(value)?;
                let ticks = r.primitive()?;
                let (low, high): (u32, u16) = (r.primitive()?, r.primitive()?);
                self.note_end(UtcTime {
                    ticks,
                    inaccuracy_ticks: u64::from(high) << 32 | u64::from(low),
                });
            }
            policy_type::RELATIVE_REQUEST_TIMEOUT | policy_type::RELATIVE_ROUND_TRIP_TIMEOUT => {
                let ticks: u64 = Reader::encapsulated(value)?.primitive()?;
                self.note_remaining(ticks.saturating_mul(TICK_NS));
            }
            _ => {}
        }
        Ok(())
    }

    fn read_remaining(&mut self, data: &[u8]) -> Result<(), DecodeError> {
        let remaining_ns = Reader::encapsulated(data)?.primitive()?;
        self.note_remaining(remaining_ns);
        Ok(())
    }

    fn note_end(&mut self, end: UtcTime) {
        let is_earlier = |known: UtcTime| end.latest_ticks() < known.latest_ticks();
        if self.end.is_none_or(is_earlier) {
            self.end = Some(end);
        }
    }

    fn note_remaining(&mut self, remaining_ns: u64) {
        let known_ns = self.remaining_ns.unwrap_or(u64::MAX);
        self.remaining_ns = Some(remaining_ns.min(known_ns));
    }
}

/// Calls `each` with the type, the value and the place of the value in `data` of each policy in an [`INVOCATION_POLICIES`] context.
///
/// # Errors
/// When the data is malformed, or the error of `each`. The policies before were read.
fn for_each_policy(
    data: &[u8],
    mut each: impl FnMut(u32, &[u8], usize) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut r = Reader::encapsulated(data)?;
    for _ in 0..r.count(POLICY_BYTES_MIN)? {
        let policy = r.primitive()?;
        let value = r.octets()?;
        each(policy, value, r.position() - value.len())?;
    }
    Ok(())
}

/// The size of a policy without value: its type and a length.
const POLICY_BYTES_MIN: usize = 8;

/// The data of a context `spent_ns` later: the times in it that say how much is left are shorter by that, and at least 0. All other bytes
/// stay, as does what [`Expiry::of`] does not understand.
pub(super) fn shortened(context: ServiceContext<'_>, spent_ns: u64) -> Cow<'_, [u8]> {
    let ServiceContext { id, data } = context;
    if spent_ns == 0 || !matches!(id, INVOCATION_POLICIES | REMAINING_TIME) {
        return Cow::Borrowed(data);
    }
    let mut later = data.to_vec();
    // As for the expiry, what cannot be read says nothing.
    let _ = if id == REMAINING_TIME {
        take_off(&mut later, spent_ns)
    } else {
        for_each_policy(data, |policy, value, at| match policy {
            policy_type::RELATIVE_REQUEST_TIMEOUT | policy_type::RELATIVE_ROUND_TRIP_TIMEOUT => {
                let value = &mut later[at..at + value.len()];
                take_off(value, spent_ns.div_ceil(TICK_NS))
            }
            _ => Ok(()),
        })
    };
    Cow::Owned(later)
}

/// Takes `spent` off the time with which an encapsulation begins, an `unsigned long long`.
fn take_off(encapsulation: &mut [u8], spent: u64) -> Result<(), DecodeError> {
    let mut r = Reader::encapsulated(encapsulation)?;
    let time: u64 = r.primitive()?;
    let (end, order) = (r.position(), r.order());
    let left = order.convert(time.saturating_sub(spent));
    put(encapsulation, end - size_of::<u64>(), &left.to_ne_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 January 1970.
    const BEGUN_TICKS: u64 = 0x01B2_1DD2_1381_4000;

    #[test]
    fn a_time_of_utc_keeps_its_nanoseconds_to_the_tick_and_says_how_wrong_it_may_be() {
        let origin = UtcOrigin {
            earliest_ticks: BEGUN_TICKS - 25,
            latest_ticks: BEGUN_TICKS,
        };
        let time = UtcTime::after(origin, 1_700_000_000_123_456_789);
        assert_eq!(time.ticks, BEGUN_TICKS + 17_000_000_001_234_567);
        assert_eq!(time.inaccuracy_ticks, 26);
        // The errors of both readings of the clocks count.
        let latest_ns = 1_700_000_000_123_461_800;
        assert_eq!(time.latest_ns_after(origin), latest_ns);
        assert_eq!(time.near_ns_after(origin), Some(latest_ns));
    }

    #[test]
    fn a_time_that_nanoseconds_cannot_say_is_the_nearest_that_they_can() {
        let origin = UtcOrigin {
            earliest_ticks: BEGUN_TICKS,
            latest_ticks: BEGUN_TICKS,
        };
        let last = BEGUN_TICKS + u64::MAX / TICK_NS;
        for (ticks, inaccuracy_ticks, latest_ns) in [
            (0, 0, 0),
            (BEGUN_TICKS - 1, 0, 0),
            (last, 1, u64::MAX),
            (u64::MAX, 0, u64::MAX),
            (u64::MAX, INACCURACY_MAX, u64::MAX),
        ] {
            let time = UtcTime {
                ticks,
                inaccuracy_ticks,
            };
            assert_eq!(time.latest_ns_after(origin), latest_ns, "{time:?}");
            assert_eq!(time.near_ns_after(origin), None, "{time:?}");
        }
        for ticks in [BEGUN_TICKS, last] {
            let time = UtcTime {
                ticks,
                inaccuracy_ticks: 0,
            };
            let near = time.near_ns_after(origin);
            assert_eq!(near, Some(time.latest_ns_after(origin)), "{time:?}");
        }
    }
}

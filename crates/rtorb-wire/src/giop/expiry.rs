//! The deadline of a request in its service contexts: as CORBA Messaging's end times, or as the time that is left.

use super::contexts::{INVOCATION_POLICIES, REMAINING_TIME};
use super::service_context::ServiceContexts;
use crate::cdr::ByteOrder;
use crate::{DecodeError, Reader};

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

/// 1 January 1970 in units of 100 ns since 15 October 1582.
const UNIX_EPOCH_TICKS: u64 = 0x01B2_1DD2_1381_4000;

/// From 1970 until about 2530, in units of 100 ns: nanoseconds of that time are a `u64`.
const NEAR_TICKS: u64 = u64::MAX / TICK_NS;

/// The largest inaccuracy that 48 bits hold.
const INACCURACY_MAX: u64 = (1 << 48) - 1;

impl UtcTime {
    /// The time so many nanoseconds after 1 January 1970. The unit of `ticks` is part of its inaccuracy.
    #[inline]
    pub const fn from_unix_ns(unix_ns: u64, inaccuracy_ns: u64) -> Self {
        Self {
            ticks: unix_ns / TICK_NS + UNIX_EPOCH_TICKS,
            // Rounded up.
            inaccuracy_ticks: inaccuracy_ns.saturating_add(TICK_NS - 1) / TICK_NS + 1,
        }
    }

    /// The latest time that it may be, in nanoseconds since 1 January 1970; 0 for an earlier one.
    #[inline]
    pub const fn latest_unix_ns(self) -> u64 {
        self.latest_ticks()
            .saturating_sub(UNIX_EPOCH_TICKS)
            .saturating_mul(TICK_NS)
    }

    /// As [`latest_unix_ns`](Self::latest_unix_ns), without saturating arithmetic, which costs more. Returns `None` for a time before
    /// 1970 or after 2530.
    #[inline]
    pub const fn near_unix_ns(self) -> Option<u64> {
        let latest = self.ticks.wrapping_add(self.inaccuracy_ticks);
        match latest.wrapping_sub(UNIX_EPOCH_TICKS) {
            ticks if ticks < NEAR_TICKS => Some(ticks * TICK_NS),
            _ => None,
        }
    }

    const fn latest_ticks(self) -> u64 {
        self.ticks.saturating_add(self.inaccuracy_ticks)
    }

    /// The time in the only context of a request, if [`end_times`](Self::end_times) made that context on a host of this byte order.
    /// Costs less than [`Expiry::of`], which reads all contexts.
    #[inline]
    pub fn only_in(contexts: ServiceContexts<'_>) -> Option<Self> {
        let [head, data @ ..] = words_of(contexts.one_native()?);
        let [own_head, own @ ..] = words_of(&OWN_CONTEXT);
        let is_fixed = |at: usize| data[at] == own[at];
        let [l0, l1, l2, l3, h0, h1, p0, p1] = data[4].to_ne_bytes();
        let (low, high) = ([l0, l1, l2, l3], [h0, h1]);
        // The words that do not change, and the two times, which are equal.
        let is_own = head == own_head
            && [0, 1, 2, 5, 6].into_iter().all(is_fixed)
            && data[3] == data[7]
            && data[4] == data[8]
            && [p0, p1] == [0; 2];
        is_own.then_some(Self {
            ticks: data[3],
            inaccuracy_ticks: u64::from(u16::from_ne_bytes(high)) << 32
                | u64::from(u32::from_ne_bytes(low)),
        })
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

/// The context with the id and the size of its data.
const CONTEXT_BYTES: usize = 8 + END_TIMES_BYTES;
const OWN_CONTEXT: [u8; CONTEXT_BYTES] = {
    let mut context = [0; CONTEXT_BYTES];
    put(&mut context, 0, &INVOCATION_POLICIES.to_ne_bytes());
    put(&mut context, 4, &(END_TIMES_BYTES as u32).to_ne_bytes());
    put(&mut context, 8, &TEMPLATE);
    context
};

/// The bytes in words: comparing these costs less than a call of `memcmp`.
#[inline(always)]
fn words_of(context: &[u8; CONTEXT_BYTES]) -> [u64; CONTEXT_BYTES / 8] {
    let mut words = [0; CONTEXT_BYTES / 8];
    let (chunks, _) = context.as_chunks::<8>();
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_ne_bytes(*chunk);
    }
    words
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
        let mut r = Reader::encapsulated(data)?;
        for _ in 0..r.count(POLICY_BYTES_MIN)? {
            let policy = r.primitive()?;
            let value = r.octets()?;
            self.read_policy(policy, value)?;
        }
        Ok(())
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

/// The size of a policy without value: its type and a length.
const POLICY_BYTES_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_utc_keeps_its_nanoseconds_to_the_tick_and_says_how_wrong_it_may_be() {
        let time = UtcTime::from_unix_ns(1_700_000_000_123_456_789, 2_500);
        assert_eq!(time.ticks, UNIX_EPOCH_TICKS + 17_000_000_001_234_567);
        assert_eq!(time.inaccuracy_ticks, 26);
        assert_eq!(time.latest_unix_ns(), 1_700_000_000_123_459_300);
        let before_1970 = UtcTime {
            ticks: 5,
            inaccuracy_ticks: 5,
        };
        assert_eq!(before_1970.latest_unix_ns(), 0);
        let never = UtcTime {
            ticks: u64::MAX,
            inaccuracy_ticks: u64::MAX,
        };
        assert_eq!(never.latest_unix_ns(), u64::MAX);
    }
}
